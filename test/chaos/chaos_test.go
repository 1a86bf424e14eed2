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
	firstFlag = flag.Uint64("first", 0, "the seed of the first of them; 0: by the clock")
	names     = flag.Bool("names", false, "a late rank, and the rank whose call differs, must be named by all: see docs/reliability.md")
	workers   = flag.Int("workers", max(runtime.NumCPU(), 2), "cases at once")
)

// TestChaos runs the cases. Each failure says the seed that runs it again.
func TestChaos(t *testing.T) {
	if *seedFlag != 0 {
		s := newScenario(*seedFlag)
		t.Log(s)
		text, verdict := s.run(t.Context())
		t.Log("\n" + text)
		if verdict != "" {
			t.Fatal(verdict)
		}
		return
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
	bad, misnamed, done := 0, 0, map[wrong]int{}
	began := time.Now()
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
				s := newScenario(first + i)
				text, verdict := s.run(t.Context())
				mu.Lock()
				done[s.wrong]++
				switch {
				case s.isMisnamed(verdict) && !*names:
					misnamed++
				case verdict != "":
					bad++
					t.Errorf("%v\n%s\nagain: go test -tags fault ./test/chaos -v -run TestChaos$ -args -seed %d\n%s", s, verdict, s.seed, text)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.Logf("%d cases from seed %d on in %v, %d of them with another rank named than the one that was late or made another call: %v",
		n, first, time.Since(began).Round(time.Second), misnamed, done)
	if misnamed > n/20 {
		t.Errorf("%d of %d cases name the wrong rank", misnamed, n)
	}
}

// run runs the case and returns what its ranks have said, and what is wrong with that.
func (s *scenario) run(ctx context.Context) (text, verdict string) {
	ctx, stop := context.WithTimeout(ctx, bound+10*time.Second)
	defer stop()
	var out lockedBuffer
	env := append(os.Environ(), fmt.Sprintf("CHAOS_SEED=%d", s.seed), "GOCCL_ALGO="+s.algo, "GOCCL_CHECKSUM=1", "GOCCL_FAULT="+s.plan(), "GORACE=atexit_sleep_ms=0")
	args := []string{"-test.run=^TestChaosRank$"}
	if s.processes {
		// A rank that is lost is no failure of Spawn's here.
		_ = boot.Spawn(ctx, boot.Command{N: s.n, Hosts: s.hosts, Path: os.Args[0], Args: args, Env: env, KeepGoing: true, Stdout: &out, Stderr: &out})
	} else {
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &out
		_ = cmd.Run()
	}
	text = out.String()
	if ctx.Err() != nil {
		return text, "a rank hangs"
	}
	return text, s.judge(parse(text))
}

// lockedBuffer is what two streams are written to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
