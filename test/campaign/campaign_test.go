package campaign

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/boot"
)

var (
	caseFlag  = flag.String("case", "", "run the job of this name alone")
	seedsFlag = flag.String("seeds", "", "run the jobs of these seeds, as 1-1000")
	workers   = flag.Int("workers", max(runtime.NumCPU(), 2), "jobs at once")
)

// seeds are those of -seeds, or else 1 to last, and what counts on from the first.
func seeds(t *testing.T, last uint64) (next *atomic.Uint64, first, _ uint64) {
	first = 1
	if *seedsFlag != "" {
		if n, err := fmt.Sscanf(*seedsFlag, "%d-%d", &first, &last); n != 2 || err != nil || last < first {
			t.Fatalf("-seeds %q: it is as 1-1000", *seedsFlag)
		}
	}
	next = new(atomic.Uint64)
	next.Store(first)
	return next, first, last
}

// TestCampaign runs random jobs.
func TestCampaign(t *testing.T) {
	if *caseFlag != "" {
		p, err := newPlan(*caseFlag)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(p)
		text, verdict, _ := p.run(t.Context())
		t.Log("\n" + text)
		if verdict != "" {
			t.Fatal(verdict)
		}
		return
	}
	next, first, last := seeds(t, 12)
	var mu sync.Mutex
	var all sync.WaitGroup
	var bad []string // a line for each job that failed
	misnamed, began := 0, time.Now()
	for range *workers {
		all.Go(func() {
			for seed := next.Add(1) - 1; seed <= last; seed = next.Add(1) - 1 {
				p, err := newPlan(fmt.Sprint(seed))
				if err != nil {
					t.Error(err)
					return
				}
				text, verdict, odd := p.run(t.Context())
				mu.Lock()
				misnamed += odd
				enough := len(bad) >= 10
				if verdict != "" {
					bad = append(bad, fmt.Sprintf("seed %d: %s", seed, verdict))
				}
				mu.Unlock()
				if enough {
					return
				}
				if verdict != "" {
					p, text, verdict = p.shrunk(t.Context(), text, verdict)
					t.Errorf("%v\n%s\nagain: go test ./test/campaign -v -run TestCampaign -args -case %s\n%s", p, verdict, p.name, text)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d jobs in %v, %d bad; %d mismatches named another rank than the odd one",
		last-first+1, time.Since(began).Round(time.Second), len(bad), misnamed)
	if len(bad) > 0 {
		t.Logf("bad, each before it was made smaller:\n%s", strings.Join(bad, "\n"))
	}
	if n := int(last - first + 1); misnamed > max(n/20, 1) {
		t.Errorf("%d mismatches of %d jobs name the wrong rank", misnamed, n)
	}
}

// shrunk makes a job that fails smaller for as long as it fails, two minutes at most: each try runs three times.
func (p *plan) shrunk(ctx context.Context, text, verdict string) (*plan, string, string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
again:
	for _, name := range p.smaller() {
		less, err := newPlan(name)
		if err != nil {
			continue
		}
		for range 3 {
			if ctx.Err() != nil {
				return p, text, verdict
			}
			if out, v, _ := less.run(ctx); v != "" && ctx.Err() == nil {
				p, text, verdict = less, out, v
				goto again
			}
		}
	}
	return p, text, verdict
}

// output collects what the processes say.
type output struct {
	mu    sync.Mutex
	said  bytes.Buffer
	begun chan struct{} // closed when the job has
	once  sync.Once
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.said.Write(b)
	if bytes.Contains(b, []byte(`{"Says":"begun","Seat":0`)) {
		o.once.Do(func() { close(o.begun) })
	}
	return n, err
}

// run runs the job, and says what is wrong with it, and how many mismatches named another rank than the odd one.
func (p *plan) run(ctx context.Context) (text, verdict string, misnamed int) {
	ctx, cancel := context.WithTimeout(ctx, jobLimit+10*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "campaign")
	if err != nil {
		return "", err.Error(), 0
	}
	defer os.RemoveAll(dir)
	hall, err := boot.ListenHall("127.0.0.1:0", secretBytes)
	if err != nil {
		return "", err.Error(), 0
	}
	defer hall.Close()
	out := &output{begun: make(chan struct{})}
	waiting, stop := context.WithCancel(ctx) // those that come late wait for as long as there are others
	defer stop()
	start := func(ctx context.Context, process int, env ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestCampaignProcess$", "-test.v=false")
		cmd.Env = slices.Concat(os.Environ(), p.env, env, []string{jobVar + "=" + p.name, fmt.Sprint(processVar, "=", process), dirVar + "=" + dir,
			"GOCCL_SECRET=" + secret, "GORACE=atexit_sleep_ms=0"})
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(out, "panic: ", err)
		}
		return cmd
	}
	var workers, others sync.WaitGroup
	for process := range p.processes() {
		seat := slices.Index(p.process, process)
		switch {
		case seat < p.ranks:
			cmd := start(ctx, process, "GOCCL_HALL="+hall.Addr())
			workers.Go(func() { cmd.Wait() })
		case seat < p.ranks+p.spares:
			cmd := start(waiting, process, "GOCCL_HALL="+hall.Addr())
			others.Go(func() { cmd.Wait() })
		default:
			others.Go(func() {
				select {
				case <-out.begun:
				case <-waiting.Done():
					return
				}
				start(waiting, process, "GOCCL_HALL="+hall.Addr(), "GOCCL_NEWCOMER=1", fmt.Sprint("GOCCL_HOSTID=host-", p.host[seat])).Wait()
			})
		}
	}
	workers.Wait()
	hangs := ctx.Err() != nil
	time.AfterFunc(5*time.Second, stop)
	others.Wait()
	out.mu.Lock()
	defer out.mu.Unlock()
	text = out.said.String()
	if hangs {
		return text, "a process hangs", 0
	}
	verdict, misnamed = p.judge(text)
	return text, verdict, misnamed
}

var crashes = regexp.MustCompile(`(?m)^(panic:|fatal error:|SIGSEGV|SIGBUS|WARNING: DATA RACE|--- FAIL)`)

// judge looks at what the ranks have said.
func (p *plan) judge(text string) (verdict string, misnamed int) {
	type failure struct {
		step  int
		scene uint64
	}
	ends, done := map[failure][]end{}, map[int]bool{}
	var wrong []string
	for l := range strings.Lines(text) {
		var x line
		if json.Unmarshal([]byte(l), &x) != nil {
			continue
		}
		switch x.Says {
		case "end":
			ends[failure{x.End.Step, x.End.Scene}] = append(ends[failure{x.End.Step, x.End.Scene}], *x.End)
		case "done":
			done[x.Seat] = true
		case "wrong":
			wrong = append(wrong, fmt.Sprintf("seat %d: %s", x.Seat, x.Text))
		}
	}
	if at := crashes.FindStringIndex(text); at != nil {
		return "a crash: " + text[at[0]:min(at[1]+200, len(text))], 0
	}
	var all []failure
	for f := range ends {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b failure) int { return a.step - b.step })
	for _, f := range all {
		text, odd := judgeEnds(ends[f])
		if misnamed += is(odd); text != "" && len(wrong) == 0 {
			return text, misnamed
		}
	}
	if len(wrong) > 0 { // what one rank has seen, not what the others heard of that
		i := slices.IndexFunc(wrong, func(s string) bool { return !strings.Contains(s, "aborted by") })
		return wrong[max(i, 0)], misnamed
	}
	for seat := range p.ranks {
		killed := slices.ContainsFunc(p.steps, func(s step) bool { return s.kind == killing && s.victim == p.process[seat] })
		if !done[seat] && !killed {
			return fmt.Sprintf("seat %d has not come to its end", seat), misnamed
		}
	}
	return "", misnamed
}
