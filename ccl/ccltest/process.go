package ccltest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/boot"
)

// callVar names, in a process that Run has started, the call of Run to take part in.
const callVar = "GOCCL_CCLTEST_CALL"

var thisCall, isProcess = os.LookupEnv(callVar)

// calls counts the calls of Run of each test under way: what a process has one of.
var calls = struct {
	sync.Mutex
	of map[testing.TB]int
}{of: map[testing.TB]int{}}

// callOf names a call of Run, the same way in all processes.
func callOf(t testing.TB) string {
	calls.Lock()
	defer calls.Unlock()
	if calls.of[t] == 0 {
		t.Cleanup(func() {
			calls.Lock()
			defer calls.Unlock()
			delete(calls.of, t)
		})
	}
	calls.of[t]++
	return fmt.Sprintf("%s call %d", t.Name(), calls.of[t])
}

// What a process prints, in a line of its own, when its ranks have passed: its exit
// code does not tell, since a test that never came to the call passes as well.
const (
	saysPassed  = "ccltest: all ranks passed"
	saysSkipped = "ccltest: ranks skipped"
)

// asProcess runs the ranks of this process, one of those that spawn has started.
func (w *world) asProcess(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), w.deadline)
	defer cancel()
	b, err := boot.Env(ctx)
	if err != nil {
		t.Fatalf("ccltest: %v", err)
	}
	defer b.Close()
	if w.processes == nil || *w.processes != b.Size() {
		t.Fatalf("ccltest: this call of Run has different Options in the process that started this one")
	}
	switch w.run(t, newSeats(w, b)) {
	case felled:
		time.Sleep(grace) // the process with the reason is to end first, and ends this one
		t.FailNow()
	case failed:
		t.FailNow()
	case skipped:
		fmt.Println(saysSkipped)
	case passed:
		fmt.Println(saysPassed)
	}
	t.SkipNow() // what follows is for the process that started this one
}

// spawn starts the processes and waits for them.
func (w *world) spawn(t testing.TB, call string) {
	t.Helper()
	switch t.(type) {
	case *testing.T, *rank:
	case *testing.B, *testing.F:
		t.Fatalf("ccltest: Processes needs a *testing.T, not a %T", t)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("ccltest: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), w.deadline+2*grace)
	defer cancel()
	var out output
	err = boot.Spawn(ctx, boot.Command{
		N: *w.processes, Path: self, Args: arguments(t.Name()), Env: environment(call),
		Stdout: &out, Stderr: &out, Prefix: true,
	})
	end, text := out.outcome(*w.processes)
	switch {
	case err != nil && ctx.Err() != nil:
		t.Fatalf("ccltest: the processes were not done after %v\n%s", w.deadline+2*grace, text)
	case err != nil: // even where the ranks passed: it may be a data race
		t.Fatalf("ccltest: %v\n%s", strings.Replace(err.Error(), "rank", "process", 1), text)
	case end == failed:
		t.Fatalf("ccltest: not all of %d processes reached this call of Run\n%s", *w.processes, text)
	}
	if testing.Verbose() {
		t.Log("\n" + text)
	}
	if end == skipped {
		t.SkipNow()
	}
}

// environment is that of a process.
func environment(call string) []string {
	env := os.Environ()
	if _, set := os.LookupEnv("GORACE"); !set {
		// The race detector would sleep for a second at the end of each.
		env = append(env, "GORACE=atexit_sleep_ms=0")
	}
	return append(env, callVar+"="+call)
}

// arguments are those of a process that runs nothing but this test. testing's own
// flags say what to write where: that is for this process alone.
func arguments(test string) []string {
	args := []string{
		"-test.run=" + pattern(test), "-test.count=1", fmt.Sprintf("-test.cpu=%d", runtime.GOMAXPROCS(0)),
		fmt.Sprintf("-test.v=%t", testing.Verbose()), fmt.Sprintf("-test.short=%t", testing.Short()),
	}
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			args = append(args, fmt.Sprintf("-%s=%s", f.Name, f.Value))
		}
	})
	return append(append(args, "--"), flag.Args()...)
}

// pattern matches one test, as -run has it.
func pattern(test string) string {
	names := strings.Split(test, "/")
	for i, s := range names {
		names[i] = "^" + regexp.QuoteMeta(s) + "$"
	}
	return strings.Join(names, "/")
}

// output is what the processes have written: its beginning, if it is long.
type output struct {
	buf  bytes.Buffer
	lost int
}

const maxOutput = 1 << 20

func (o *output) Write(p []byte) (int, error) {
	n := min(len(p), maxOutput-o.buf.Len())
	if bytes.Contains(p, []byte(saysPassed)) || bytes.Contains(p, []byte(saysSkipped)) {
		n = len(p) // never lost
	}
	n = max(n, 0)
	o.buf.Write(p[:n])
	o.lost += len(p) - n
	return len(p), nil
}

// outcome is what the processes say of themselves, and all else they say.
func (o *output) outcome(processes int) (outcome, string) {
	end, said := passed, make([]bool, processes)
	var text strings.Builder
	for line := range strings.Lines(o.buf.String()) {
		whole := strings.TrimRight(line, "\r\n")
		isEnd := strings.HasSuffix(whole, saysPassed) || strings.HasSuffix(whole, saysSkipped)
		var p int
		if n, _ := fmt.Sscanf(whole, "[%d]", &p); !isEnd || n != 1 || p < 0 || p >= processes {
			text.WriteString(line)
			continue
		}
		said[p] = true
		if strings.HasSuffix(whole, saysSkipped) {
			end = skipped
		}
	}
	for _, s := range said {
		if !s {
			end = failed
		}
	}
	if o.lost > 0 {
		fmt.Fprintf(&text, "... and %d bytes more\n", o.lost)
	}
	return end, text.String()
}
