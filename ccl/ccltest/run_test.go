package ccltest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// recorder is a testing.TB that notes what would be printed, and fails alone.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	errors   []string
	logs     []string
	fails    bool
	skips    bool
	cleanups []func()
}

// record runs f as a test of its own. In a process that Run has started the test is
// the real one: how it fails is what counts.
func record(t *testing.T, f func(t testing.TB)) *recorder {
	t.Helper()
	if isProcess {
		f(t)
	}
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	for _, f := range r.cleanups {
		f()
	}
	return r
}

func (r *recorder) note(to *[]string, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*to = append(*to, text)
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.fails = true
	r.note(&r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) FailNow() { r.fails = true; runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
func (r *recorder) Log(args ...any)                 { r.note(&r.logs, fmt.Sprint(args...)) }
func (r *recorder) Logf(format string, args ...any) { r.note(&r.logs, fmt.Sprintf(format, args...)) }
func (r *recorder) SkipNow()                        { r.skips = true; runtime.Goexit() }

// kinds are the ways to run 4 ranks.
var kinds = []struct {
	name      string
	opts      []Option
	transport string
	processes int
}{
	{"goroutines", nil, "memory", 1},
	{"blocks", []Option{Hosts(2)}, "memory and TCP (lo)", 1},
	{"round robin", []Option{RoundRobin(2)}, "memory and TCP (lo)", 1},
	{"TCP", []Option{Hosts(4)}, "TCP (lo)", 1},
	{"one process", []Option{Processes(1)}, "memory", 1},
	{"two processes", []Option{Processes(2)}, "shared memory", 2},
	{"processes", []Option{Processes(4)}, "shared memory", 4},
	{"mixed", []Option{Processes(4), Hosts(2)}, "shared memory and TCP (lo)", 4},
	{"mixed in turn", []Option{Processes(4), RoundRobin(2)}, "shared memory and TCP (lo)", 4},
	{"TCP between processes", []Option{Processes(4), Hosts(4)}, "TCP (lo)", 4},
}

func TestRun(t *testing.T) {
	for _, tc := range kinds {
		t.Run(tc.name, func(t *testing.T) {
			Run(t, 4, func(t testing.TB, c *ccl.Comm) {
				require.Equal(t, 4, c.Size())
				if runtime.GOOS == "linux" {
					require.Equal(t, tc.transport, c.Transport())
				}
				pids := make([]int, 4)
				require.NoError(t, ccl.AllGather(t.Context(), c, pids, []int{os.Getpid()}))
				different := map[int]bool{}
				for _, p := range pids {
					different[p] = true
				}
				require.Len(t, different, tc.processes)
			}, tc.opts...)
		})
	}
}

func TestPlaces(t *testing.T) {
	for _, tc := range []struct {
		opt   Option
		nodes []int
	}{
		{Hosts(2), []int{0, 0, 0, 1, 1}},
		{Hosts(3), []int{0, 0, 1, 1, 2}},
		{RoundRobin(2), []int{0, 1, 0, 1, 0}},
		{RoundRobin(5), []int{0, 1, 2, 3, 4}},
	} {
		Run(t, 5, func(t testing.TB, c *ccl.Comm) {
			require.Equal(t, tc.nodes[c.Rank()], c.Place().Node)
		}, tc.opt)
	}
}

func TestOptions(t *testing.T) {
	var failures sync.Map
	Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		c.Abort(fmt.Errorf("on purpose"))
		<-c.Done()
		require.NoError(t, t.Context().Err(), "the end of c is the test's own affair")
	}, With(ccl.Options{OnFailure: func(e *ccl.Error) { failures.Store(e.Rank, e.Code) }}))
	for r := range 2 {
		code, _ := failures.Load(r)
		require.Equal(t, ccl.ErrAborted, code)
	}
}

func TestArguments(t *testing.T) {
	for _, tc := range []struct {
		n    int
		opts []Option
		text string
	}{
		{0, nil, "ccltest: 0 ranks; a job has at least one"},
		{2, []Option{Hosts(3)}, "ccltest: 3 hosts for 2 ranks; each host needs one rank at least"},
		{2, []Option{RoundRobin(0)}, "ccltest: 0 hosts for 2 ranks; each host needs one rank at least"},
		{2, []Option{Processes(3)}, "ccltest: 3 processes for 2 ranks; each process needs one rank at least"},
		{2, []Option{Deadline(0)}, "ccltest: a deadline of 0s; it must be more than 0"},
	} {
		r := record(t, func(t testing.TB) { Run(t, tc.n, nil, tc.opts...) })
		require.Equal(t, []string{tc.text}, r.errors)
	}
}

// waits is a rank that waits for rank 2, which fails.
func waits(t testing.TB, c *ccl.Comm) {
	if c.Rank() == 2 {
		require.Equal(t, 1, 2)
	}
	require.NoError(t, ccl.Barrier(context.Background(), c))
}

func TestFails(t *testing.T) {
	for _, tc := range kinds {
		t.Run(tc.name, func(t *testing.T) {
			r := record(t, func(t testing.TB) {
				Run(t, 4, waits, tc.opts...)
				t.Errorf("Run has returned")
			})
			require.True(t, r.fails)
			require.Len(t, r.errors, 1)
			require.Equal(t, 1, strings.Count(r.errors[0], "Error Trace"), r.errors[0])
			require.Regexp(t, `rank 2: \s+`, r.errors[0])
			require.NotContains(t, r.errors[0], "Run has returned")
		})
	}
}

func TestEndsContext(t *testing.T) {
	r := record(t, func(t testing.TB) {
		Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			sub, err := c.Split(t.Context(), 0, 0)
			require.NoError(t, err)
			defer sub.Close()
			if c.Rank() == 0 {
				t.Fatal("on", "purpose")
			}
			require.NoError(t, ccl.Barrier(t.Context(), sub)) // of which the test knows nothing
		})
	})
	require.Equal(t, []string{"rank 0: on purpose"}, r.errors)
}

func TestPanics(t *testing.T) {
	r := record(t, func(t testing.TB) {
		Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			if c.Rank() == 1 {
				panic("on purpose")
			}
			require.NoError(t, ccl.Barrier(t.Context(), c))
		})
	})
	require.Len(t, r.errors, 1)
	require.Regexp(t, `^rank 1: panic: on purpose\n\n(.*\n)*.*TestPanics`, r.errors[0])
}

func TestExits(t *testing.T) {
	r := record(t, func(t testing.TB) {
		Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			if c.Rank() == 1 {
				fmt.Println("this is the end")
				os.Exit(7)
			}
			ccl.Barrier(t.Context(), c)
			select {}
		}, Processes(3))
	})
	require.Len(t, r.errors, 1)
	require.Contains(t, r.errors[0], "ccltest: process 1 exited with code 7\n")
	require.Contains(t, r.errors[0], "[1] this is the end\n")
}

func TestDeadline(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts []Option
	}{{"goroutines", nil}, {"processes", []Option{Processes(2)}}} {
		t.Run(tc.name, func(t *testing.T) {
			r := record(t, func(t testing.TB) {
				Run(t, 2, func(t testing.TB, c *ccl.Comm) {
					if c.Rank() == 1 {
						<-t.Context().Done()
						t.Error("what it says now is of no interest")
					}
				}, append(tc.opts, Deadline(500*time.Millisecond))...)
			})
			require.Len(t, r.errors, 1)
			require.Regexp(t, `ccltest: not done after 500ms: ranks \[1\]\n(.*\n)*.*goroutine (.*\n)*.*TestDeadline`, r.errors[0])
			require.NotContains(t, r.errors[0], "no interest")
		})
	}
}

func TestSkips(t *testing.T) {
	for _, tc := range kinds {
		t.Run(tc.name, func(t *testing.T) {
			r := record(t, func(t testing.TB) {
				Run(t, 4, func(t testing.TB, c *ccl.Comm) { t.Skip("not here") }, tc.opts...)
			})
			require.True(t, r.skips)
			require.False(t, r.fails)
		})
	}
}

func TestCleanup(t *testing.T) {
	var mu sync.Mutex
	order := map[int][]string{}
	Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		for _, s := range []string{"second", "first"} {
			t.Cleanup(func() {
				require.NoError(t, ccl.Barrier(t.Context(), c), "c is closed after the cleanups")
				mu.Lock()
				defer mu.Unlock()
				order[c.Rank()] = append(order[c.Rank()], s)
			})
		}
	})
	require.Equal(t, map[int][]string{0: {"first", "second"}, 1: {"first", "second"}}, order)
}

func TestReports(t *testing.T) {
	for _, tc := range []struct {
		name string
		f    func(t testing.TB)
		want []string
	}{
		{"Error", func(t testing.TB) { t.Error("a", 1); t.Error("b") }, []string{"rank 0: a 1", "rank 0: b"}},
		{"Errorf", func(t testing.TB) { t.Errorf("%d%%", 7) }, []string{"rank 0: 7%"}},
		{"Fail", func(t testing.TB) { t.Fail(); require.True(t, t.Failed()) }, []string{"rank 0: failed"}},
		{"FailNow", func(t testing.TB) { t.FailNow() }, []string{"rank 0: failed"}},
		{"Fatal", func(t testing.TB) { t.Fatal("a"); panic("not reached") }, []string{"rank 0: a"}},
		{"Fatalf", func(t testing.TB) { t.Fatalf("a%s", "b"); panic("not reached") }, []string{"rank 0: ab"}},
		{"Goexit", func(t testing.TB) { runtime.Goexit() }, []string{"rank 0: ended by runtime.Goexit"}},
		{"Cleanup", func(t testing.TB) { t.Cleanup(func() { t.Fatal("late") }) }, []string{"rank 0: late"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := record(t, func(t testing.TB) {
				Run(t, 1, func(t testing.TB, c *ccl.Comm) { tc.f(t) })
			})
			require.True(t, r.fails)
			require.Equal(t, tc.want, r.errors)
		})
	}
	r := record(t, func(t testing.TB) {
		Run(t, 1, func(t testing.TB, c *ccl.Comm) {
			t.Log("a", 1)
			t.Logf("b%d", 2)
			t.Cleanup(func() { t.Log(t.Skipped()) })
			t.Skipf("c")
		})
	})
	require.Equal(t, []string{"rank 0: a 1", "rank 0: b2", "rank 0: c", "rank 0: true"}, r.logs)
}

// Spares are ranks beside those of Run. One that is not needed has passed; one that is needed runs the function.
func TestSpares(t *testing.T) {
	for name, opts := range map[string][]Option{"goroutines": nil, "hosts": {RoundRobin(2)}, "processes": {Processes(4)}} {
		t.Run(name, func(t *testing.T) {
			Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				require.Equal(t, []int{3, 1}, []int{c.Size(), c.Waiting()})
				require.NoError(t, ccl.Barrier(t.Context(), c))
			}, append(opts, Spares(1))...)
		})
	}
	Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		if c.Fresh() == nil {
			_, e := callOn(t, c)
			require.Equal(t, 1, e.Peer)
			next, err := c.Replace(t.Context())
			require.NoError(t, err)
			defer next.Close()
			c = next
		}
		require.Equal(t, []int{1}, c.Fresh())
		require.NoError(t, ccl.Barrier(t.Context(), c))
	}, Spares(1), Kill(1, 9), VirtualTime())
	_, err := newWorld(2, nil, []Option{Spares(-1)})
	require.EqualError(t, err, "-1 spares; there are none, or some")
}
