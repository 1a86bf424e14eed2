package launch

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
)

func TestParse(t *testing.T) {
	j := ordered(t, strings.Fields("-np 4 --hosts=2 -keep-going -- go -np 7"))
	require.Equal(t, 4, j.NP)
	require.Equal(t, 2, j.ActAs)
	require.True(t, j.KeepGoing)
	require.Equal(t, "-np 7", strings.Join(j.Program[1:], " "))

	require.True(t, j.NPGiven)

	j = ordered(t, strings.Fields("-np 4 -spares 2 -- go"))
	require.Equal(t, []int{6, 2}, []int{j.NP, j.Spares})
	require.True(t, j.KeepGoing)
	require.Equal(t, []string{"GOCCL_SPARES=2"}, j.Env)
	require.Zero(t, ordered(t, strings.Fields("-np 4 -spares 0 -restart 0 -- go")).Spares)

	j = ordered(t, []string{"--", "go"})
	require.Equal(t, option.Default().NP, j.NP)
	require.False(t, j.NPGiven)
}

// A variable that makes spares of ranks is what -spares is to the launcher, in its environment and by -x; the flag counts.
func TestSparesByVariable(t *testing.T) {
	for _, tc := range []struct {
		env, args string
		np, most  int
	}{
		{"2", "-np 4 -- go", 6, 2}, {"2", "-np 4 -x GOCCL_SPARES=3 -- go", 7, 3}, {"2", "-np 4 -spares 1 -- go", 5, 1},
		{"2", "-np 4 -spares 0 -- go", 4, 0}, {"", "-np 4 -- go", 4, 0}, {"", "-x GOCCL_SPARES=1 -np 4 -- go", 5, 1},
	} {
		t.Setenv("GOCCL_SPARES", tc.env)
		o := ordered(t, strings.Fields(tc.args))
		require.Equal(t, []int{tc.np, tc.most}, []int{o.NP, o.Spares}, tc)
		require.Equal(t, tc.most > 0, o.KeepGoing, tc)
		if tc.env != "" || tc.most > 0 {
			require.Equal(t, "GOCCL_SPARES="+strconv.Itoa(tc.most), o.Env[len(o.Env)-1], tc)
		}
	}
	t.Setenv("GOCCL_SPARES", "two")
	var out, errs bytes.Buffer
	require.Equal(t, option.BadUsage, Command(t.Context(), func() {}, strings.Fields("-np 2 -- go"), &out, &errs))
	require.Equal(t, "bench launch: GOCCL_SPARES=two: it takes a whole number of at least 0\n", errs.String())
}

func ordered(t *testing.T, args []string) *Order {
	t.Helper()
	var out, errs bytes.Buffer
	o, status := parse(args, &out, &errs)
	require.NotNil(t, o, "%d: %s", status, &errs)
	return o
}

func TestCommandRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"-np 4 go":                "go: put -- before the program: bench launch -np 4 -- go",
		"-np 0 -- go":             "-np 0: it must be a whole number from 1 to 1024",
		"-np":                     "-np needs a value: ranks (on this machine: the cores, at least 2, at most 8)",
		"-np 2":                   "it needs a program: bench launch -np 2 -- ./train -epochs 3",
		"-np 2 -spares x -- go":   "-spares x: it must be a whole number from 0 to 1024",
		"-np 2 -hosts 3 -- go":    "-hosts 3: there are only 2 processes to spread over them; give -np 3 or more",
		"-x NAME -- go":           "-x NAME: it takes NAME=VALUE, such as OMP_NUM_THREADS=1",
		"-x =1 -- go":             "-x =1: it takes NAME=VALUE, such as OMP_NUM_THREADS=1",
		"-x GOCCL_RANK=1 -- go":   "-x GOCCL_RANK=1: GOCCL_RANK says which rank this is, and each rank gets its own",
		"-logs= -- go":            "-logs : give a directory",
		"-keepgoing -- go":        "-keepgoing: no such flag; did you mean -keep-going? (-h lists them)",
		"-- no-such-program-here": "no-such-program-here: no such program",
		"-- command_test.go":      "command_test.go: no such program in PATH; the one that is here is ./command_test.go",
		"-- ../launch":            "../launch is a directory, not a program",
		"-- ./command_test.go":    "./command_test.go is not executable: chmod +x ./command_test.go",
	} {
		var out, err bytes.Buffer
		require.Equal(t, 2, Command(t.Context(), func() {}, strings.Fields(args), &out, &err), args)
		require.Equal(t, "bench launch: "+want+"\n", err.String())
		require.Empty(t, out.String())
	}
}

func TestCommandHelp(t *testing.T) {
	var out, err bytes.Buffer
	require.Equal(t, 0, Command(t.Context(), func() {}, []string{"-h"}, &out, &err))
	require.True(t, strings.HasPrefix(out.String(), about))
	require.Contains(t, out.String(), "-hostfile FILE")
	require.Empty(t, err.String())
}
