package option

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// example is a sub-command with a flag of each kind.
type example struct {
	*Sub
	name         string
	count, ranks int
	given, force bool
	x            float64
	limit        time.Duration
	job          Job
	out, errs    bytes.Buffer
}

func newExample() *example {
	e := &example{ranks: 2, count: 1}
	e.Sub = NewSub("example", "bench example shows.\n\n  bench example [flags] FILE\n", "Exit status: 0.", &e.out, &e.errs)
	e.Func("name", "WORD", "a WORD", func(s string) error { e.name = s; return nil })
	e.Percent(&e.x, "x", "more or less")
	e.Time(&e.limit, "limit", "not after")
	e.Func("force", "", "anyway", on(&e.force))
	e.Count(&e.count, "count", "so many", 1, 10)
	e.Ranks(&e.ranks, &e.given)
	e.Job(&e.job)
	return e
}

func TestSub(t *testing.T) {
	for _, tc := range []struct {
		args            string
		operands, after string
		want            func(e *example)
	}{
		{"a -name x b", "a b", "", func(e *example) { e.name = "x" }},
		{"-name=x=y a -- -b c", "a", "-b c", func(e *example) { e.name = "x=y" }},
		{"- - --name -3", "- -", "", func(e *example) { e.name = "-3" }},
		{"-force -x 0.5 -limit=2", "", "", func(e *example) { e.force, e.x, e.limit = true, 0.5, 2*time.Second }},
		{"-force=false -q=false a", "a", "", func(*example) {}},
		{"-np 7 -count 10", "", "", func(e *example) { e.ranks, e.given, e.count = 7, true, 10 }},
		{"-nodes 3 -q -bind none", "", "", func(e *example) { e.job = Job{Nodes: 3, Quiet: true, Bind: "none"} }},
	} {
		e, want := newExample(), newExample()
		tc.want(want)
		goOn, status := e.Parse(strings.Fields(tc.args))
		require.True(t, goOn, "%s: %s", tc.args, &e.errs)
		require.Zero(t, status)
		require.Equal(t, strings.Fields(tc.operands), append([]string{}, e.Operands...), tc.args)
		require.Equal(t, strings.Fields(tc.after), append([]string{}, e.After...), tc.args)
		for _, e := range []*example{e, want} {
			e.Sub, e.out, e.errs = nil, bytes.Buffer{}, bytes.Buffer{}
		}
		require.Equal(t, want, e, tc.args)
	}
	// What looks like flags in quotes is an operand: bench ab "-m 1" "-m 4".
	e := newExample()
	goOn, _ := e.Parse([]string{"-m 1", "-m 4"})
	require.True(t, goOn)
	require.Equal(t, []string{"-m 1", "-m 4"}, e.Operands)
}

func TestSubRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"-nam e":         "-nam: no such flag; did you mean -name? (-h lists them)",
		"-zzz":           "-zzz: no such flag (-h lists them)",
		"-name":          "-name needs a value: a WORD",
		"-x much":        "-x much: it must be a percentage, such as 5",
		"-x -1":          "-x -1: it must be a percentage, such as 5",
		"-x NaN":         "-x NaN: it must be a percentage, such as 5",
		"-limit soon":    "-limit soon: a time is a number and a unit, such as 500us, 2s or 10m",
		"-force=perhaps": "-force=perhaps: -force takes no value",
		"-q=yes":         "-q=yes: -q takes no value",
		"-count 11":      "-count 11: it must be a whole number from 1 to 10",
		"-np 0":          "-np 0: it must be a whole number from 1 to 1024",
		"-bind cores":    "-bind cores: it must be core or none",
	} {
		e := newExample()
		goOn, status := e.Parse(strings.Fields(args))
		require.False(t, goOn, args)
		require.Equal(t, BadUsage, status)
		require.Equal(t, "bench example: "+want+"\n", e.errs.String())
		require.Empty(t, e.out.String())
	}
	e := newExample()
	e.Stray = NoOperands
	goOn, status := e.Parse([]string{"-name", "x", "a", "-zzz"})
	require.False(t, goOn)
	require.Equal(t, BadUsage, status)
	require.Equal(t, "bench example: a: an argument without a flag (-h lists the flags)\n", e.errs.String())
}

func TestSubHelp(t *testing.T) {
	for _, arg := range []string{"-h", "-help", "--help"} {
		e := newExample()
		goOn, status := e.Parse([]string{"a", arg})
		require.False(t, goOn)
		require.Equal(t, Good, status)
		require.Empty(t, e.errs.String())
		require.True(t, strings.HasPrefix(e.out.String(), "bench example shows.\n\n  bench example [flags] FILE\n\n  -bind HOW "), &e.out)
		require.True(t, strings.HasSuffix(e.out.String(), "  -x PERCENT         more or less\n\nExit status: 0.\n"), &e.out)
		require.Contains(t, e.out.String(), "\n  -force             anyway\n")
		for _, line := range []string{"-q                 print no line", "-hostfile FILE     the hosts", "-np N              ranks (on", "-count N           so many\n"} {
			require.Contains(t, e.out.String(), "\n  "+line)
		}
		for _, line := range strings.Split(e.out.String(), "\n") {
			require.LessOrEqual(t, len(line), 100)
		}
	}
}

func TestSubComplain(t *testing.T) {
	e := newExample()
	require.Equal(t, Failed, e.Complain(Failed, errors.New("no such file")))
	require.Equal(t, "bench example: no such file\n", e.errs.String())
}
