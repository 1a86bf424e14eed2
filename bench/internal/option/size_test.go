package option

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseSize(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want int
		err  error
	}{
		{"0", 0, nil},
		{"8", 8, nil},
		{"64K", 64 << 10, nil},
		{"64k", 64 << 10, nil},
		{"3M", 3 << 20, nil},
		{"1G", 1 << 30, nil},
		{"9223372036854775807", math.MaxInt64, nil},
		{"9223372036854775808", 0, errOverflow},
		{"8589934591G", 8589934591 << 30, nil},
		{"8589934592G", 0, errOverflow},
		{"99999999999999999999999", 0, errOverflow},
		{"12x", 0, errSize},
		{"", 0, errSize},
		{"K", 0, errSize},
		{"-1", 0, errSize},
		{"+1", 0, errSize},
		{"1.5M", 0, errSize},
		{"1_000", 0, errSize},
		{"1KK", 0, errSize},
		{" 1", 0, errSize},
	} {
		got, err := ParseSize(tc.in)
		require.Equal(t, tc.err, err, tc.in)
		require.Equal(t, tc.want, got, tc.in)
	}
}

func TestFormatSize(t *testing.T) {
	for in, want := range map[int]string{0: "0", 8: "8", 1000: "1000", 1024: "1K", 1536: "1536", 64 << 20: "64M", 3 << 30: "3G"} {
		require.Equal(t, want, FormatSize(in))
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"8", "64K", "12x", "8589934592G"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, n, 0)
		again, err := ParseSize(FormatSize(n))
		require.NoError(t, err)
		require.Equal(t, n, again)
	})
}
