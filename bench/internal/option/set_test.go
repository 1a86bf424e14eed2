package option

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpan(t *testing.T) {
	for in, want := range map[string]time.Duration{"2s": 2 * time.Second, "500us": 500 * time.Microsecond, "10m": 10 * time.Minute, "1.5": 1500 * time.Millisecond} {
		got, err := span(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, bad := range []string{"", "x", "0", "-1s", "1e300", "NaN", "5 s"} {
		_, err := span(bad)
		require.Error(t, err, bad)
	}
}
