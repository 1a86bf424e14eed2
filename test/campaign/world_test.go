package campaign

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

// found is what is wrong with a box.
type found struct {
	mu    sync.Mutex
	list  []string
	calls int
	said  strings.Builder
}

func (f *found) add(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

func (f *found) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.said.Write(b)
}

// boxed is a rank of a box.
type boxed struct {
	rank
	b     *box
	f     *found
	net   *simnet.Net
	began time.Time // of the job
	host  *simnet.Host
	all   *job
	grows bool // it has called Grow
	moved bool // into a job that has grown
}

// job is what the ranks of a box have in common.
type job struct {
	mu     sync.Mutex
	causes map[string][]int // of the first Comm: cause, and the seats that have it
	newborn
	leave chan struct{} // closed when a rank is to leave
	ended time.Time     // all that work have ended
}

// outcome is how a box went.
type outcome struct {
	found
	virtual, real time.Duration
	sum           uint64
	transcript    []string
}

// run runs the box.
func (b *box) run(t *testing.T) (o *outcome) {
	o = &outcome{}
	began := time.Now()
	defer func() {
		o.real = time.Since(began)
		if p := recover(); p != nil {
			o.add("PANIC, or something is left: %v", p)
		}
	}()
	over := make(chan struct{})
	defer close(over)
	go func() { // a hang in real time: something spins, or waits for a lock
		select {
		case <-over:
		case <-time.After(2 * time.Minute):
			stacks := make([]byte, 1<<22)
			fmt.Fprintf(os.Stderr, "hangs: seed %v\n%s", b, stacks[:runtime.Stack(stacks, true)])
			os.Exit(3)
		}
	}()
	synctest.Test(t, func(t *testing.T) { b.inside(o) })
	return o
}

func (b *box) inside(o *outcome) {
	began := time.Now()
	n := simnet.New(b.seed, max(slices.Max(b.host), b.birth.hall)+1, b.link)
	all := &job{causes: map[string][]int{}, leave: make(chan struct{}), newborn: newborn{began: make(chan struct{}), grown: map[string][]int{}}}
	if b.fault.kind == "noroute" {
		n.Unroute(b.fault.host, b.fault.other)
	}
	hall, err := b.open(n)
	if err != nil {
		o.add("HALL: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), boxMost)
	defer cancel()
	done := make([]chan struct{}, len(b.host))
	for seat := range b.host {
		h := n.Host(b.host[seat])
		r := &boxed{rank: rank{p: &b.plan, seat: seat, out: o}, b: b, f: &o.found, net: n, began: began, host: h, all: all}
		done[seat] = make(chan struct{})
		go func() {
			defer close(done[seat])
			r.live(h.Context(ctx))
		}()
	}
	short, end := context.WithCancel(ctx)
	var befalling sync.WaitGroup
	befalling.Go(func() { b.befall(short, n, all) })
	ended := func(seat int) bool {
		select {
		case <-done[seat]:
			return true
		default:
			return n.Host(b.host[seat]).Ended()
		}
	}
	befalling.Go(func() { b.end(ctx, hall, all, ended) })
	for seat, d := range done {
		for alive := true; alive && !n.Host(b.host[seat]).Ended(); {
			select {
			case <-d:
				alive = false
			case <-time.After(100 * time.Millisecond):
				if time.Since(began) > boxMost && ctx.Err() != nil {
					stacks := make([]byte, 1<<20)
					o.add("HANG: seat %d\n%s", seat, stacks[:runtime.Stack(stacks, true)])
					n.Host(b.host[seat]).Kill(false)
				}
			}
		}
	}
	end()
	befalling.Wait()
	b.judgeBirth(all, &o.found)
	o.virtual = time.Since(began)
	o.sum, _ = n.Sum()
	o.transcript = n.Transcript()
	for i := range n.Size() {
		if h := n.Host(i); h.Ended() {
			h.Bury()
		} else {
			h.Go()
		}
	}
	for _, d := range done {
		<-d
	}
	if hall != nil {
		hall.Close()
	}
	if b.fault.mild() && len(o.list) == 0 {
		if text, _ := b.judge(o.said.String()); text != "" {
			o.add("JUDGE: %s", text)
		}
	}
	if len(all.causes) > 1 && n.Size() > 2 { // of two hosts nobody can say which it is
		var list []string
		for cause, seats := range all.causes {
			list = append(list, fmt.Sprintf("%v: %s", seats, cause))
		}
		slices.Sort(list)
		o.add("VERDICTS: %s", strings.Join(list, " | "))
	}
	time.Sleep(15 * time.Second) // what outlives a Close for a while comes to its end
	synctest.Wait()
	if text := left(); text != "" {
		o.add("LEFT: %s", text)
	}
}

// left are the goroutines of this bubble, but for this one and that of the test.
func left() string {
	stacks := make([]byte, 4<<20)
	all := strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n")
	_, bubble, _ := strings.Cut(strings.SplitN(all[0], "\n", 2)[0], "synctest bubble ")
	all = slices.DeleteFunc(all[1:], func(s string) bool {
		head, _, _ := strings.Cut(s, "\n")
		return !strings.HasSuffix(head, "synctest bubble "+bubble) || strings.Contains(s, "synctest.Run(") || strings.Contains(s, "testingSynctestTest(")
	})
	return strings.Join(all, "\n\n")
}

// live is the life of a seat.
func (r *boxed) live(ctx context.Context) {
	b, f := r.b, r.f
	from, epoch, alive := r.begin(ctx)
	if r.world != nil {
		defer func() { r.world.Close() }()
	}
	if !alive {
		return
	}
	if b.fault.kind == "leave" {
		over := r.leaves()
		defer over()
	}
	for {
		i, err := r.steps(ctx, from)
		if err == nil {
			r.says("done", nil)
			return
		}
		if r.isLeaving() {
			r.world.Close()
			r.host.Kill(false) // its process ends at once
			return
		}
		if r.host.Ended() || errors.As(err, new(wrong)) {
			return
		}
		if !r.check(epoch, i, err) {
			return
		}
		r.note("epoch %d, step %d: %v; the Comm: %v", epoch, i, err, r.world.Err())
		from, err = r.recover(ctx, i)
		if err != nil && b.fault.also >= 0 && !r.host.Ended() { // the second of the hosts was lost just then
			r.note("recovery: %v", err)
			from, err = r.recover(ctx, i)
		}
		if err != nil {
			r.note("recovery: %v", err)
			if !r.host.Ended() && !b.fault.struck(b.host[r.seat]) && !(r.grows && b.ofStore()) && slices.Contains([]string{"stop", "kill", "silent", "alone"}, b.fault.kind) {
				f.add("RECOVERY: seat %d, epoch %d: %v", r.seat, epoch, err)
			}
			return
		}
		if epoch++; epoch > 5 {
			return
		}
	}
}

// note tells the transcript.
func (r *boxed) note(format string, args ...any) {
	r.net.Note("seat %d: %s", r.seat, fmt.Sprintf(format, args...))
}

// begins tells the hosts' fate that a step of that kind begins.
func (r *boxed) begins(k kind) {
	if k == r.b.birth.when {
		r.all.begins.Do(func() { close(r.all.began) })
	}
}

// steps makes those from the i-th on, and returns that which failed.
func (r *boxed) steps(ctx context.Context, i int) (int, error) {
	for ; i <= len(r.b.steps); i++ {
		r.host.Live()
		if r.b.isLater() && (r.b.seed+uint64(i))%5 == 0 {
			err := ccl.Reorder(ctx, r.world)
			r.note("Reorder: %v", err)
			if err != nil {
				return i, err
			}
		}
		began := time.Now()
		var err error
		if i < len(r.b.steps) && r.b.steps[i].kind != idle {
			r.begins(r.b.steps[i].kind)
		}
		if i == len(r.b.steps) {
			if f := &r.b.fault; f.kind == "pauseall" { // a process that ends soon after a pause may have been given up: see plane/certain.go
				time.Sleep(time.Until(r.began.Add(f.at + f.last + 3*time.Second)))
			}
			err = ccl.Barrier(ctx, r.world)
		} else if r.b.steps[i].kind == growing {
			err = r.growing(ctx, i)
		} else if r.b.steps[i].kind == lagging {
			err = r.lagging(ctx, r.b.steps[i].number)
		} else if r.b.steps[i].kind == idle {
			err = r.idles(ctx)
		} else {
			s := r.newScene(ctx, r.world, r.seats, r.b.steps[i].number, 0, 0)
			err = s.make(r.b.steps[i].kind)
			if err == nil {
				time.Sleep(time.Duration(s.rnd.IntN(200)) * time.Millisecond)
			}
		}
		took := time.Since(began)
		r.f.mu.Lock()
		r.f.calls++
		r.f.mu.Unlock()
		r.host.Live()
		if took > boxBound && (i == len(r.b.steps) || r.b.steps[i].kind != growing) && !r.host.Ended() && r.b.fault.kind != "pauseall" && !(r.b.fault.kind == "stop" && r.b.fault.struck(r.b.host[r.seat])) {
			r.f.add("BOUND: seat %d: step %d took %v: %v", r.seat, i, took, err)
		}
		if errors.As(err, new(wrong)) && !r.host.Ended() && !r.isLeaving() {
			r.f.add("WRONG: seat %d: %v", r.seat, err)
		}
		if err != nil {
			return i, err
		}
	}
	return i, nil
}

// check looks at the error of a step. It returns whether the job goes on.
func (r *boxed) check(epoch, i int, err error) bool {
	b, f, mine := r.b, r.f, r.b.fault.struck(r.b.host[r.seat])
	var e *ccl.Error
	switch {
	case r.isCalm():
		f.add("FALSE ALARM: seat %d, epoch %d, step %d: %v", r.seat, epoch, i, err)
		return false
	case !errors.As(err, &e):
		f.add("NO ccl.Error: seat %d, step %d: %v", r.seat, i, err)
		return false
	}
	cause := r.world.Err()
	if cause == nil {
		// A Comm made of this one has failed, or a message: others may be within a call.
		r.world.Abort(errors.New("recovers"))
		cause = r.world.Err()
		// A Comm made of this one has connections of its own: where one is reset, that Comm alone fails.
		if epoch == 0 && e.Code == ccl.ErrRankLost && !strings.Contains(err.Error(), "world/") {
			f.add("LOST on a good Comm: seat %d, step %d: %v", r.seat, i, err)
		}
	}
	if epoch > 0 || r.moved || !errors.As(cause, &e) {
		return true
	}
	r.isRouted(cause, 0)
	if b.fault.kind == "leave" && e.Code == ccl.ErrRankLost {
		f.add("LEAVER: seat %d, step %d: of a rank that has closed the Comm it hears: %v", r.seat, i, cause)
	}
	peer := -1
	if e.Peer >= 0 {
		peer = r.seats[e.Peer]
	}
	if e.Code == ccl.ErrRankLost && peer >= 0 && !b.fault.struck(b.host[peer]) && !(mine && b.fault.kind != "reset") {
		f.add("BLAME: seat %d, step %d names seat %d: %v", r.seat, i, peer, err)
	}
	// Each side of a partition has its own cause, and so may all where the two hosts reach the others: see docs/reliability.md.
	if b.fault.kind == "reset" || !mine && b.fault.kind != "cut" && b.fault.kind != "oneway" {
		r.all.mu.Lock()
		defer r.all.mu.Unlock()
		text := fmt.Sprintf("%v peer %d missing %v", e.Code, peer, e.Missing)
		r.all.causes[text] = append(r.all.causes[text], r.seat)
	}
	return true
}

// recoverMost is how long Replace and Shrink may take together, where processes have ended: nobody is waited for.
const recoverMost = 3 * time.Second

// recover goes on after step i, with spares or with fewer ranks, and returns the next step.
func (r *boxed) recover(ctx context.Context, i int) (next int, err error) {
	var c *ccl.Comm
	began := time.Now()
	if r.b.spares > 0 {
		c, err = r.world.Replace(ctx)
		r.note("Replace: %v, %v", c, err)
	}
	if c == nil {
		before := err
		if c, err = r.world.Shrink(ctx); err != nil {
			return 0, fmt.Errorf("%w; Replace before: %v", err, before)
		}
		r.note("Shrink: %v", c)
	}
	if took := time.Since(began); took > recoverMost && r.b.fault.kind == "kill" {
		r.f.add("BOUND: seat %d: after step %d the others come together in %v", r.seat, i, took)
	}
	r.world.Close()
	r.world = c
	return r.meet(ctx, i+1)
}

var firstFlag = flag.Bool("first", false, "end with the first job that fails")

// TestWorld runs random jobs in virtual time.
func TestWorld(t *testing.T) {
	next, _, last := seeds(t, 40)
	var mu sync.Mutex
	var virtual time.Duration
	jobs, steps, bad, began := 0, 0, 0, time.Now()
	t.Run("jobs", func(t *testing.T) {
		for w := range *workers {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for {
					name := fmt.Sprint(next.Add(1) - 1)
					if *caseFlag != "" {
						name = *caseFlag
					}
					b, err := newBox(name)
					if err != nil {
						t.Error(err)
						return
					}
					if b.seed > last && *caseFlag == "" {
						return
					}
					o := b.run(t)
					mu.Lock()
					jobs, steps, virtual = jobs+1, steps+o.calls, virtual+o.virtual
					enough := bad >= 10 || bad > 0 && *firstFlag
					if len(o.list) > 0 {
						bad++
					}
					mu.Unlock()
					if len(o.list) > 0 && !enough {
						if *firstFlag {
							fmt.Printf("first: job %d: %.200s\n", b.seed, o.list[0])
						} else {
							b, o = b.shrunk(t, o)
						}
						t.Errorf("%v\n%s\nagain: go test ./test/campaign -v -run TestWorld -args -case %s\n%s", b, strings.Join(o.list, "\n"), b.name, strings.Join(o.transcript, "\n"))
					}
					if enough || *caseFlag != "" {
						return
					}
				}
			})
			if *caseFlag != "" {
				return
			}
		}
	})
	took := time.Since(began)
	t.Logf("%d jobs, %d bad, %d steps, %v of virtual time in %v: %.0f seconds a second", jobs, bad, steps, virtual.Round(time.Second), took.Round(time.Millisecond), virtual.Seconds()/took.Seconds())
}

// shrunk leaves steps out for as long as the job still fails, half a minute at most. Each try runs three times: a seed gives the plan,
// and not all of the schedule.
func (b *box) shrunk(t *testing.T, o *outcome) (*box, *outcome) {
	until := time.Now().Add(30 * time.Second)
again:
	for _, name := range b.smaller() {
		less, err := newBox(name)
		if err != nil || len(less.steps) == 0 || len(less.steps) >= len(b.steps) {
			continue
		}
		for range 3 {
			if time.Now().After(until) {
				return b, o
			}
			if found := less.run(t); len(found.list) > 0 {
				b, o = less, found
				goto again
			}
		}
	}
	return b, o
}
