package ccltest

import (
	"flag"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func TestPattern(t *testing.T) {
	for test, want := range map[string]string{
		"TestA":          "^TestA$",
		"TestA/b":        "^TestA$/^b$",
		"TestA/b.c|d/#0": `^TestA$/^b\.c\|d$/^#0$`,
	} {
		require.Equal(t, want, pattern(test))
	}
}

var own = flag.String("ccltest.own", "", "a flag of these tests")

// A process gets the flags of the test's own, and takes part in the right call.
func TestCalls(t *testing.T) {
	if !isProcess {
		require.NoError(t, flag.Set("ccltest.own", "a value"))
		defer flag.Set("ccltest.own", "")
	}
	var here atomic.Int32
	for call := range 3 {
		Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			require.Equal(t, "a value", *own)
			require.Equal(t, testing.Short(), flag.Lookup("test.short").Value.String() == "true")
			if call == 1 {
				here.Add(1)
			}
		}, Processes(2-call%2))
	}
	if !isProcess {
		require.Zero(t, here.Load(), "that was in other processes")
	}
	t.Run("a/b (c)", func(t *testing.T) {
		Run(t, 2, func(t testing.TB, c *ccl.Comm) {}, Processes(2))
	})
	for range 2 {
		t.Run("same", func(t *testing.T) {
			Run(t, 2, func(t testing.TB, c *ccl.Comm) {}, Processes(2))
		})
	}
}

// A test that goes another way in its processes must not pass.
func TestStrays(t *testing.T) {
	if isProcess {
		return
	}
	r := record(t, func(t testing.TB) {
		Run(t, 2, func(t testing.TB, c *ccl.Comm) {}, Processes(2))
	})
	require.Len(t, r.errors, 1)
	require.Contains(t, r.errors[0], "ccltest: not all of 2 processes reached this call of Run\n[")
}

// A process that fails after its ranks have passed, as one does that has seen a data
// race, has not passed.
func TestFailsLater(t *testing.T) {
	r := record(t, func(t testing.TB) {
		if isProcess {
			t.Cleanup(func() { os.Exit(66) })
		}
		Run(t, 2, func(t testing.TB, c *ccl.Comm) {}, Processes(2))
	})
	require.Len(t, r.errors, 1)
	require.Regexp(t, `^ccltest: process [01] exited with code 66\n`, r.errors[0])
}

func TestOtherOptions(t *testing.T) {
	p := 2
	if isProcess {
		p = 1
	}
	r := record(t, func(t testing.TB) {
		Run(t, 2, func(t testing.TB, c *ccl.Comm) {}, Processes(p))
	})
	require.Len(t, r.errors, 1)
	require.Contains(t, r.errors[0], "this call of Run has different Options in the process that started this one")
}

func TestOutput(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		outcome  outcome
		text     string
	}{
		{"passed", "[0] hello\n[0] " + saysPassed + "\n[1] " + saysPassed + "\n[1] PASS\n", passed, "[0] hello\n[1] PASS\n"},
		{"after another's text", "[0] no newline" + saysPassed + "\n[1] " + saysPassed + "\n", passed, ""},
		{"skipped", "[0] " + saysSkipped + "\n[1] " + saysPassed + "\n", skipped, ""},
		{"one is missing", "[0] " + saysPassed + "\n[0] PASS\n", failed, "[0] PASS\n"},
		{"no process", saysPassed + "\n[7] " + saysPassed + "\n", failed, saysPassed + "\n[7] " + saysPassed + "\n"},
		{"nothing", "", failed, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var o output
			o.Write([]byte(tc.in))
			end, text := o.outcome(2)
			require.Equal(t, tc.outcome, end)
			require.Equal(t, tc.text, text)
		})
	}
}

func TestOutputIsLong(t *testing.T) {
	var o output
	long := make([]byte, maxOutput)
	for i := range long {
		long[i] = 'x'
	}
	long[len(long)-1] = '\n'
	o.Write(long)
	o.Write([]byte("[0] more\n"))
	o.Write([]byte("[0] " + saysPassed + "\n"))
	end, text := o.outcome(1)
	require.Equal(t, passed, end)
	require.Equal(t, string(long)+"... and 9 bytes more\n", text)
}
