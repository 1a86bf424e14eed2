//go:build fault

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// A resident is one rank of a corner.
type resident struct {
	*corner
	rank  int
	out   io.Writer
	arena []int64
	first atomic.Pointer[ccl.Comm] // Comm 0, for OnFailure
}

// What a rank says, a line for each thing; comm -1 is NewComm, or the Splits that make the Comms:
//
//	go R time T                           all have their Comms
//	end R C code X peer P time T: ...     Comm C has ended with that error, which names rank P of the world; code 0: with none
//	left R C [..]                         the ranks of the Comm that Shrink made of C
//	refused R C code X peer P time T: ... Shrink has returned that
//	wrong R ...                           a result was wrong
//	broken R ...                          something else that must not be
//	done R                                the rank has come to its end
func (a *resident) say(format string, args ...any) {
	fmt.Fprintln(a.out, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; "))
}

// fate says how Comm i has ended, or what Shrink of it has returned.
func (a *resident) fate(what string, i int, err error) {
	var e *ccl.Error
	var w errWrong
	switch {
	case err == nil:
		a.say("%s %d %d code 0 peer -1 time %d", what, a.rank, i, time.Now().UnixNano())
	case errors.As(err, &w):
		a.say("wrong %d Comm %d: %v", a.rank, i, err)
	case errors.As(err, &e):
		a.say("%s %d %d code %d peer %d time %d: %v", what, a.rank, i, e.Code, worldPeer(e), time.Now().UnixNano(), err)
	default:
		a.say("broken %d Comm %d: %v", a.rank, i, err)
	}
}

// worldPeer is the rank of the world that e names.
func worldPeer(e *ccl.Error) int {
	if e.Peer >= 0 && e.Peer < len(e.World) {
		return e.World[e.Peer]
	}
	return e.Peer
}

// live is the life of one rank.
func (a *resident) live(b ccl.Bootstrap) {
	ctx, stop := context.WithTimeout(context.Background(), bound())
	defer stop()
	defer a.say("done %d", a.rank)
	o := &ccl.Options{Timeout: 20 * time.Second, PeerTimeout: a.peer, Log: slog.New(slog.DiscardHandler)}
	if a.sort == closings && a.comms[0].way == closeOnFailure && a.rank == a.comms[0].culprit {
		o.OnFailure = func(*ccl.Error) { a.first.Load().Close() }
	}
	world, err := ccl.NewComm(ctx, b, o)
	if err != nil {
		a.fate("end", -1, err)
		return
	}
	defer world.Close()
	defer func() { ccl.FreeSlice(a.arena) }()
	comms, err := a.settle(ctx, world)
	if err != nil {
		a.fate("end", -1, err)
		for _, c := range comms {
			if c != nil {
				c.Close()
			}
		}
		return
	}
	a.say("go %d time %d", a.rank, time.Now().UnixNano())
	undo := a.disturb(ctx, world)
	var all sync.WaitGroup
	for i, c := range comms {
		if c != nil {
			all.Go(func() { a.drive(ctx, i, c) })
		}
	}
	all.Wait()
	undo()
	for i := range a.comms {
		if _, gaps := a.part(i); gaps[0] != -int64(i+1) || gaps[len(gaps)-1] != -int64(i+1) {
			a.say("wrong %d what lies beside the memory of Comm %d has changed", a.rank, i)
		}
	}
	// The last one to leave: in good order, if the world is.
	if world.Err() == nil && a.sort != kills && a.sort != arenas {
		if err := ccl.Barrier(ctx, world); err != nil {
			a.fate("end", -1, err)
		}
	}
}

// settle makes the Comms, and the slice of which each has a part.
func (a *resident) settle(ctx context.Context, world *ccl.Comm) (comms []*ccl.Comm, err error) {
	for i := range a.comms {
		color := -1
		if a.comms[i].has(a.rank) {
			color = 0
		}
		c, err := world.Split(ctx, color, 0)
		if err != nil {
			return comms, err
		}
		if i == 0 {
			a.first.Store(c)
		}
		comms = append(comms, c)
	}
	if a.arena, err = ccl.MakeSlice[int64](ctx, world, len(a.comms)*a.stride()); err != nil {
		return comms, err
	}
	for i := range a.comms {
		_, gap := a.part(i)
		for j := range gap {
			gap[j] = -int64(i + 1)
		}
	}
	return comms, ccl.Barrier(ctx, world)
}

// stride is how many elements of the slice a Comm has: no number of pages.
func (a *resident) stride() int { return 700 + int(a.seed*7919%30_000) }

// part is what Comm i works on, and what lies behind it and is the program's own.
func (a *resident) part(i int) (work, own []int64) {
	all := a.arena[i*a.stride() : (i+1)*a.stride()]
	return all[:len(all)-100], all[len(all)-100:]
}

// disturb begins what a rank does to its process, or to all; undo ends it.
func (a *resident) disturb(ctx context.Context, world *ccl.Comm) (undo func()) {
	switch {
	case a.sort == descriptors && a.rank == a.victim:
		return starve()
	case a.sort == pauses:
		pids := make([]int64, a.n)
		if err := ccl.AllGather(ctx, world, pids, []int64{int64(os.Getpid())}); err != nil {
			a.fate("end", -1, err)
		}
		if a.rank != a.victim {
			break
		}
		list := strings.Trim(fmt.Sprint(pids), "[]")
		// Not one of those that are stopped: a stopped process wakes nobody.
		wake := exec.Command("sh", "-c", fmt.Sprintf("sleep %g; kill -STOP %s; sleep %g; kill -CONT %s", a.delay.Seconds(), list, a.pause.Seconds(), list))
		if err := wake.Start(); err != nil {
			a.say("broken %d %v", a.rank, err)
			break
		}
		return func() { wake.Wait() }
	}
	return func() {}
}

// drive uses Comm i as its goroutine does, and says how it has ended.
func (a *resident) drive(ctx context.Context, i int, c *ccl.Comm) {
	defer c.Close()
	p := &a.comms[i]
	var err error
	switch {
	case p.fails && a.sort == closings:
		err = a.close(ctx, c, p)
	case p.fails && p.idle:
		a.spoil(c, p)
		select {
		case <-c.Done():
			err = c.Err()
		case <-ctx.Done():
			a.say("broken %d Comm %d has not heard of its end", a.rank, i)
			return
		}
	default:
		err = a.stream(ctx, i, c)
	}
	a.fate("end", i, err)
	var e *ccl.Error
	// Where one rank lacks something, the others hear of it in different ways, and only some of those are reasons to go on.
	lacks := a.sort == descriptors || a.sort == mappings || a.sort == memory
	if p.shrink && errors.As(err, &e) && e.Code != ccl.ErrClosed && e.Code != ccl.ErrBackend && a.sort != closings && !lacks {
		a.shrink(ctx, i, c)
	}
}

// spoil begins what the culprit does to a Comm that fails.
func (a *resident) spoil(c *ccl.Comm, p *party) {
	if p.culprit == a.rank {
		time.AfterFunc(a.delay, func() { c.Abort(errors.New("on purpose")) })
	}
}

// stream makes the calls of Comm i: until one fails, if the Comm is to fail.
func (a *resident) stream(ctx context.Context, i int, c *ccl.Comm) error {
	p := &a.comms[i]
	inner := ctx
	if p.fails && p.culprit == a.rank && a.sort == arenas && a.seed&1 == 0 {
		var stop context.CancelFunc
		inner, stop = context.WithCancel(ctx)
		defer stop()
		time.AfterFunc(a.delay, stop)
	} else if p.fails {
		a.spoil(c, p)
	}
	for j := 0; j < len(p.calls) || p.fails; j++ {
		k := p.calls[j%len(p.calls)]
		k.queue = k.queue && !p.fails // the end of a Wait's context ends the Wait alone
		err := a.shared(inner, i, c, j)
		if err == nil && (a.sort == wraps || a.sort == kills) {
			err = around(inner, c, j)
		}
		if err == nil {
			err = runners[k.typ](inner, c, k, j)
		}
		if err == nil && j == len(p.calls)/2 {
			err = a.branch(inner, c, j)
		}
		if err != nil {
			return err
		}
	}
	return ccl.Barrier(ctx, c) // nobody closes before all have come
}

// shared makes a call in place on the Comm's part of the slice, and checks it, and what the program itself wrote beside it.
func (a *resident) shared(ctx context.Context, i int, c *ccl.Comm, step int) error {
	work, own := a.part(i)
	work = work[step%64 : len(work)-step%32]
	for j := range own[1 : len(own)-1] {
		own[1+j] = int64(step)
	}
	for j := range work {
		work[j] = int64(c.Rank() + j + step)
	}
	if err := ccl.AllReduce(ctx, c, work, work, ccl.Sum); err != nil {
		return err
	}
	n := int64(c.Size())
	for j, v := range work {
		if want := n*(n-1)/2 + n*int64(j+step); v != want {
			return errWrong{fmt.Errorf("AllReduce in place returned no error, but element %d is %d, not %d", j, v, want)}
		}
	}
	for _, v := range own[1 : len(own)-1] {
		if v != int64(step) {
			return errWrong{fmt.Errorf("what the program wrote beside the memory of the call is %d, not %d", v, step)}
		}
	}
	return nil
}

// around sends to the next rank and receives from the one before, as messages of all the sizes that go in different ways.
func around(ctx context.Context, c *ccl.Comm, step int) error {
	n := []int{1, 20, 700, 20_000}[step%4]
	next, last := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	src, dst := make([]int64, n), make([]int64, n)
	for i := range src {
		src[i] = int64(c.Rank()*1000 + step + i)
	}
	if err := ccl.SendRecv(ctx, c, dst, last, src, next); err != nil {
		return err
	}
	for i, v := range dst {
		if want := int64(last*1000 + step + i); v != want {
			return errWrong{fmt.Errorf("SendRecv returned no error, but element %d is %d, not %d", i, v, want)}
		}
	}
	return nil
}

// branch makes a Comm of the Comm, and shared memory, and gives both back. What ends the new Comm ends c: the rank at fault
// tells those that are not in it, and the others wait for that, or those would meet a Comm that somebody has closed.
func (a *resident) branch(ctx context.Context, c *ccl.Comm, step int) error {
	sub, err := c.Split(ctx, c.Rank()%2, 0)
	if err != nil { // which may have failed for this rank's color alone
		giveUp(ctx, c, err, c.Rank())
		return err
	}
	defer sub.Close()
	slice, err := ccl.MakeSlice[int64](ctx, sub, 1000)
	if err == nil {
		err = a.twig(ctx, sub, slice, step)
		ccl.FreeSlice(slice)
	} else { // which is this rank's own affair: the others would hear no more than that it has closed the Comm
		sub.Abort(err)
	}
	var e *ccl.Error
	if errors.As(err, &e) && c.Size() > sub.Size() {
		if m := splitFailed.FindStringSubmatch(err.Error()); m != nil && e.Code == ccl.ErrAborted {
			return a.behind(c, err, m[1])
		}
		giveUp(ctx, c, err, sub.Rank())
	}
	return err
}

// giveUp ends c for err, if that is the doing of this rank, which is rank me of the Comm whose call returned err; else it waits for
// the rank at fault to do so.
func giveUp(ctx context.Context, c *ccl.Comm, err error, me int) {
	var e *ccl.Error
	if ctx.Err() != nil || !errors.As(err, &e) || e.Peer < 0 || e.Peer == me { // a rank that gives up names the one that it waited for
		c.Abort(err)
	}
	select {
	case <-c.Done():
	case <-time.After(heard):
	}
}

// splitFailed is what the ranks of a new Comm hear of one that has not got it, since c failed by the doing of a rank that is
// not among them.
var splitFailed = regexp.MustCompile(`: Split failed: (?:world rank (\d+))?`)

// behind is why c failed, which a Comm that was split from it is aborted for, with err: rank culprit of the world did it.
func (a *resident) behind(c *ccl.Comm, err error, culprit string) error {
	select {
	case <-c.Done():
	case <-time.After(heard):
		return errWrong{fmt.Errorf("a part of a Comm that goes on ends with %w", err)}
	}
	var e *ccl.Error
	if errors.As(c.Err(), &e) && strconv.Itoa(worldPeer(e)) != culprit && a.sort != givenUp {
		return errWrong{fmt.Errorf("a part of a Comm ends with %w, the Comm with %v", err, e)}
	}
	return c.Err()
}

// twig does the work of a Comm that branch has made.
func (a *resident) twig(ctx context.Context, sub *ccl.Comm, s []int64, step int) error {
	s[0] = int64(step)
	if err := ccl.AllReduce(ctx, sub, s, s, ccl.Sum); err != nil {
		return err
	}
	if want := int64(step * sub.Size()); s[0] != want {
		return errWrong{fmt.Errorf("AllReduce of a Comm that Split made is %d, not %d", s[0], want)}
	}
	return ccl.Barrier(ctx, sub)
}

// shrink goes on from Comm i, as often as it takes.
func (a *resident) shrink(ctx context.Context, i int, failed *ccl.Comm) {
	for range a.n + 1 {
		c, err := failed.Shrink(ctx)
		if err != nil {
			a.fate("refused", i, err)
			return
		}
		defer c.Close()
		left := make([]int, c.Size())
		if err = ccl.AllGather(ctx, c, left, []int{a.rank}); err == nil {
			err = runners[0](ctx, c, call{kind: ccl.KindAllReduce, count: 1000}, i)
		}
		if err == nil {
			err = ccl.Barrier(ctx, c)
		}
		if err == nil {
			a.say("left %d %d %v", a.rank, i, left)
			return
		}
		failed = c
	}
	a.say("broken %d Comm %d: Shrink and Shrink, and no end", a.rank, i)
}

// close makes the calls of a Comm that one of its ranks closes, or aborts, under the goroutine that uses it.
func (a *resident) close(ctx context.Context, c *ccl.Comm, p *party) error {
	culprit := p.culprit == a.rank
	end := func() { c.Close() }
	if p.way == closeOnFailure || p.way == abortSplit {
		end = func() { c.Abort(errors.New("on purpose")) }
	}
	if p.way == closeShrink && culprit {
		c.Abort(errors.New("on purpose"))
	}
	closed := make(chan struct{})
	if culprit {
		time.AfterFunc(a.delay, func() { defer close(closed); end() })
		defer func() { <-closed }()
	}
	one := func() error { return runners[0](ctx, c, call{kind: ccl.KindAllReduce, count: 2000}, 0) }
	for step := 0; ; step++ {
		var err error
		switch p.way {
		case closeSplit, abortSplit:
			if !culprit {
				time.Sleep(a.delay / 2)
			}
			var sub *ccl.Comm
			if sub, err = c.Split(ctx, 0, 0); err == nil {
				err = sub.Close()
			}
		case closeShrink:
			if !culprit {
				select {
				case <-c.Done():
				case <-ctx.Done():
				}
				time.Sleep(a.delay / 2)
			}
			var sub *ccl.Comm
			if sub, err = c.Shrink(ctx); err == nil {
				return sub.Close()
			}
		case closeQueue, closeOnFailure:
			q := c.On(nil)
			src, dst := []int64{1}, make([]int64, 1)
			var w ccl.Work
			for range 5 {
				w = q.AllReduce(ccl.BufOf(dst), ccl.BufOf(src), ccl.Sum)
			}
			err = w.Wait(ctx)
		case closeGroup:
			src, dst := []int64{1}, make([]int64, 2)
			err = c.On(nil).Group(func(g ccl.Queue) error {
				g.AllReduce(ccl.BufOf(dst[:1]), ccl.BufOf(src), ccl.Sum)
				g.AllReduce(ccl.BufOf(dst[1:]), ccl.BufOf(src), ccl.Sum)
				return nil
			}).Wait(ctx)
			if err == nil && (dst[0] != int64(c.Size()) || dst[1] != dst[0]) {
				err = errWrong{fmt.Errorf("a group returned no error, but %v", dst)}
			}
		default:
			err = one()
		}
		if err != nil {
			return err
		}
	}
}

// TestCornerRank is not a test of its own: it is what the processes of a case run.
func TestCornerRank(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("CHAOS_CORNER"), 10, 64)
	if err != nil {
		return
	}
	k := newCorner(seed)
	asRanks(t, k.processes, k.n, k.hosts, func(b *boot.Boot) { (&resident{corner: k, rank: b.Rank(), out: os.Stdout}).live(b) })
}

// sorted is a copy of ranks, in order.
func sorted(ranks []int) []int {
	s := slices.Clone(ranks)
	slices.Sort(s)
	return s
}
