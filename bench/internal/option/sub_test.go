package option

import (
	goflag "flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseSub(t *testing.T) {
	for _, tc := range []struct {
		args            string
		n               int
		operands, after []string
		err             string
	}{
		{"a -n 3 b", 3, []string{"a", "b"}, nil, ""},
		{"-n=3 a -- -b c", 3, []string{"a"}, []string{"-b", "c"}, ""},
		{"- -", 1, []string{"-", "-"}, nil, ""},
		{"-m 3", 1, nil, nil, "-m: no such flag; did you mean -n? (-h lists them)"},
		{"-zzz", 1, nil, nil, "-zzz: no such flag (-h lists them)"},
		{"-n", 1, nil, nil, "which value? It needs one: -n"},
		{"a -h", 1, nil, nil, "flag: help requested"},
	} {
		fs := goflag.NewFlagSet("x", goflag.ContinueOnError)
		n := fs.Int("n", 1, "a `NUMBER`")
		operands, after, err := ParseSub(fs, strings.Fields(tc.args))
		if tc.err != "" {
			require.EqualError(t, err, tc.err, tc.args)
			continue
		}
		require.NoError(t, err, tc.args)
		require.Equal(t, tc.n, *n)
		require.Equal(t, tc.operands, operands, tc.args)
		require.Equal(t, tc.after, after, tc.args)
		require.Equal(t, "  -n NUMBER          a NUMBER\n", Flags(fs))
	}
	// What looks like flags in quotes is an operand: bench ab "-m 1" "-m 4".
	fs := goflag.NewFlagSet("x", goflag.ContinueOnError)
	operands, _, err := ParseSub(fs, []string{"-m 1", "-m 4"})
	require.NoError(t, err)
	require.Equal(t, []string{"-m 1", "-m 4"}, operands)
}
