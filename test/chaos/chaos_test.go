//go:build fault

package chaos

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/boot"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run the case of this seed alone")
	casesFlag = flag.Int("cases", 500, "how many cases to run")
	ranksFlag = flag.Int("ranks", 0, "so many ranks in each case of TestR6RandomFaults; 0: 2 to 8")
	firstFlag = flag.Uint64("first", 0, "the seed of the first of them; 0: by the clock")
	names     = flag.Bool("names", false, "a late rank, and the rank whose call differs, must be named by all: see docs/reliability.md")
	workers   = flag.Int("workers", max(runtime.NumCPU(), 2), "cases at once")
)

// A trial is one case: a job, and the judge of what its ranks say.
type trial interface {
	fmt.Stringer
	job() job
	verdict(text string) string // what is wrong with it; "" if nothing is
}

// TestR6RandomFaults runs jobs of one Comm with one fault.
func TestR6RandomFaults(t *testing.T) {
	misnamed, done := 0, map[wrong]int{}
	n := campaign(t, "TestR6RandomFaults", func(seed uint64) trial { return newScenario(seed) }, func(c trial, verdict string) bool {
		s := c.(*scenario)
		done[s.wrong]++
		if s.isMisnamed(verdict) && !*names {
			misnamed++
			return true
		}
		return verdict == ""
	})
	t.Logf("%d of %d cases named another rank than the one that was late or made another call: %v", misnamed, n, done)
	if misnamed > n/20 {
		t.Errorf("%d of %d cases name the wrong rank", misnamed, n)
	}
}

// campaign runs the cases that the flags ask for and returns how many. Each failure says the seed that runs it again.
// accept, which is called by one goroutine at a time, says whether a case has passed.
func campaign(t *testing.T, name string, newTrial func(seed uint64) trial, accept func(trial, string) bool) int {
	if *seedFlag != 0 {
		c := newTrial(*seedFlag)
		t.Log(c)
		text, verdict := c.job().run(t.Context(), c.verdict)
		t.Log("\n" + text)
		if !accept(c, verdict) {
			t.Fatal(verdict)
		}
		return 1
	}
	n, first := *casesFlag, *firstFlag
	if testing.Short() {
		n = min(n, 40)
	}
	if first == 0 {
		first = uint64(time.Now().UnixNano()/1e6) % 1e9 * 1000
	}
	var next atomic.Uint64
	var mu sync.Mutex
	var all sync.WaitGroup
	bad, began := 0, time.Now()
	for range *workers {
		all.Go(func() {
			for {
				i := next.Add(1) - 1
				mu.Lock()
				enough := i >= uint64(n) || bad >= 20
				mu.Unlock()
				if enough {
					return
				}
				c := newTrial(first + i)
				text, verdict := c.job().run(t.Context(), c.verdict)
				mu.Lock()
				if !accept(c, verdict) {
					bad++
					t.Errorf("%v\n%s\nagain: go test -tags fault ./test/chaos -v -run %s$ -args -seed %d\n%s", c, verdict, name, first+i, text)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.Logf("%d cases from seed %d on in %v, %d of them bad", n, first, time.Since(began).Round(time.Second), bad)
	return n
}

// A job is what a case starts: a test of this binary as n ranks.
type job struct {
	n, hosts  int    // hosts 0: one
	processes bool   // one for each rank; else goroutines of one process
	test      string // the test that each process runs
	env       []string
	builds    []string                  // the binary of each rank, of processes; empty: this one
	beside    func(ctx context.Context) // runs while the job does; nil: nothing
}

// run runs the job and returns what its ranks have said, and what judge says of that.
func (j job) run(ctx context.Context, judge func(string) string) (text, verdict string) {
	ctx, stop := context.WithTimeout(ctx, bound()+10*time.Second)
	defer stop()
	var out bytes.Buffer
	env := append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), j.env...)
	args := []string{"-test.run=^" + j.test + "$", fmt.Sprint("-ranks=", *ranksFlag)}
	var beside sync.WaitGroup
	inner, end := context.WithCancel(ctx)
	if j.beside != nil {
		beside.Go(func() { j.beside(inner) })
	}
	if j.processes {
		c := boot.Command{N: j.n, Hosts: j.hosts, Path: os.Args[0], Args: args, Env: env, KeepGoing: true, Stdout: &out, Stderr: &out}
		if len(j.builds) > 0 {
			c.Path, c.Args = "/bin/sh", []string{"-c", `eval "exec \"\$CHAOS_BUILD_$GOCCL_RANK\" '` + args[0] + `'"`}
			for r, path := range j.builds {
				c.Env = append(c.Env, fmt.Sprintf("CHAOS_BUILD_%d=%s", r, path))
			}
		}
		// A rank that is lost is no failure of Spawn's here.
		_ = boot.Spawn(ctx, c)
	} else {
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &out
		_ = cmd.Run()
	}
	hangs := ctx.Err() != nil
	end()
	beside.Wait()
	text = out.String()
	if hangs {
		return text, "a rank hangs"
	}
	return text, judge(text)
}

func (s *scenario) job() job {
	return job{n: s.n, hosts: s.hosts, processes: s.processes, test: "TestChaosRank",
		env: []string{fmt.Sprintf("CHAOS_SEED=%d", s.seed), "GOCCL_ALGO=" + s.algo, "GOCCL_CHECKSUM=1", "GOCCL_FAULT=" + s.plan()}}
}

func (s *scenario) verdict(text string) string { return s.judge(parse(text)) }
