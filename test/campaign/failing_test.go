package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
)

// trouble is how a Comm fails that is made for it.
type trouble int

const (
	aborts    trouble = iota // a rank calls Abort while all make calls
	queuesOn                 // the same, over queued calls
	unheard                  // the same, and nobody waits for the queued call: Close tells
	cancels                  // a rank's context ends
	closes                   // a rank closes, twice at once
	deadline                 // a rank is late, and another's call has a limit
	late                     // a rank is late for longer than Options.Timeout
	monitored                // ranks are late for a MonitoredBarrier
	mismatch                 // a rank makes another call
	resets                   // a connection breaks under messages
	troubles
	killed // its process is: no trouble of a Comm made for it
	circle // two ranks receive from each other, which the world alone tries
)

var troubleNames = []string{"abort", "abort over a queue", "abort unheard", "cancel", "close", "deadline", "late", "late for a MonitoredBarrier", "mismatch", "reset", "", "kill", "circle"}

func (t trouble) String() string { return troubleNames[t] }

// An end is what a rank says of the failure of a Comm, in seats.
type end struct {
	Seat, Step int
	Scene      uint64
	Trouble    trouble
	Culprits   []int // those at fault: the one that calls Abort, the late, the killed
	Of         int   // how many ranks of the Comm say it
	Code       ccl.Code
	Peer       int
	Missing    []int
	Certain    bool
	Took       time.Duration
	Text       string
	Far        bool `json:",omitempty"` // the hosts are, so that a short limit may end before anything is known
}

// failing has a Comm fail that is made for it, on all ranks, and looks at what they are told. The scene's Comm goes on.
func (s *scene) failing() error { return s.fail(trouble(s.rnd.IntN(int(troubles)))) }

func (s *scene) fail(t trouble) error {
	n, id := s.c.Size(), s.rnd.Uint64()
	members := s.rnd.Perm(n)
	if n < 2 {
		return s.blocking()
	}
	timeout := callLimit
	if t == late || t == circle {
		timeout = 1500 * time.Millisecond
	}
	c, err := s.c.SplitWith(s.ctx, 0, slices.Index(members, s.c.Rank()), func(o *ccl.Options) { o.Timeout = timeout })
	if err != nil {
		return fmt.Errorf("step %d: SplitWith: %w", s.step, err)
	}
	inner := s.r.newScene(s.ctx, c, s.seatsOf(members), s.step, s.depth+1, id)
	if err := ccl.Barrier(s.ctx, s.c); err != nil { // all have it when it fails
		c.Close()
		return fmt.Errorf("step %d: Barrier: %w", s.step, err)
	}
	x := failure{scene: inner, t: t, culprit: inner.rnd.IntN(n), other: inner.rnd.IntN(n - 1), delay: time.Duration(inner.rnd.IntN(4000)) * time.Microsecond, id: id,
		limit: []time.Duration{20, 50, 300, 700}[inner.rnd.IntN(4)] * time.Millisecond}
	x.other += is(x.other >= x.culprit)
	if t == monitored { // it is rank 0's limit
		x.culprit, x.other = max(x.culprit, 1), 0
	}
	goesOn := inner.rnd.IntN(2) == 0 && t != closes && t != unheard
	err = x.meet()
	if err == nil && goesOn {
		err = x.shrink()
	}
	if e := c.Close(); e != nil && err == nil && t != unheard {
		err = s.wrongf("%v: Close tells again what has been told: %v", t, e)
	}
	return err
}

// A failure is one Comm that fails.
type failure struct {
	*scene
	t              trouble
	culprit, other int // ranks of the Comm
	delay, limit   time.Duration
	id             uint64
}

// meet has it fail, and says what this rank is told.
func (x *failure) meet() error {
	me, began := x.c.Rank(), time.Now()
	err := x.run(me == x.culprit)
	took := time.Since(began)
	if errors.As(err, new(wrong)) {
		return err
	}
	if x.t == closes && me == x.culprit {
		return nil
	}
	of := len(x.seats) - is(x.t == closes)
	if x.t == unheard {
		if of--; me == x.culprit {
			return nil
		}
	}
	culprits := []int{x.culprit}
	if x.t == circle {
		culprits = append(culprits, x.other)
	}
	if err := x.say(err, x.t, x.seatsOf(culprits), of, x.id, took); err != nil || x.t == unheard {
		return err
	}
	// Every later call has the same.
	again := ccl.Barrier(x.ctx, x.c)
	var a, b *ccl.Error
	if !errors.As(again, &a) || !errors.As(err, &b) || a.Code != b.Code || a.Peer != b.Peer || !errors.Is(x.c.Err(), b.Code) {
		return x.wrongf("%v: first %v, then %v, and Err says %v", x.t, err, again, x.c.Err())
	}
	return nil
}

// say tells the judge what a failure looks like here.
func (s *scene) say(err error, t trouble, culprits []int, of int, id uint64, took time.Duration) error {
	var e *ccl.Error
	if !errors.As(err, &e) {
		return s.wrongf("%v: nothing failed on rank %d of %v: %v", t, s.c.Rank(), s.c, err)
	}
	x := end{s.r.seat, s.step, id, t, culprits, of, e.Code, -1, s.seatsOf(e.Missing), e.Certain, took, err.Error(), s.r.p.far}
	if e.Peer >= 0 {
		x.Peer = s.seats[e.Peer]
	}
	s.r.says("end", x)
	return nil
}

// run makes calls until one fails.
func (x *failure) run(mine bool) error {
	ctx := x.ctx
	switch x.t {
	case aborts:
		if mine {
			time.AfterFunc(x.delay, func() { x.c.Abort(errors.New("on purpose")) })
		}
	case cancels:
		if mine {
			inner, cancel := context.WithCancel(ctx)
			defer cancel()
			time.AfterFunc(x.delay, cancel)
			ctx = inner
		}
	case closes:
		if mine {
			time.AfterFunc(x.delay, func() { x.c.Close() })
		}
	case queuesOn, unheard:
		return x.queueOn(mine)
	case deadline, late, monitored:
		return x.beLate(mine)
	case mismatch:
		return x.differ(mine)
	case resets:
		return x.breakUnder(mine)
	case circle:
		return x.waitRound()
	}
	return x.untilError(ctx)
}

// waitRound has two ranks receive from each other, so that both wait until Options.Timeout ends. They are told that they do.
func (x *failure) waitRound() error {
	peer := x.other
	switch x.c.Rank() {
	case x.culprit:
	case x.other:
		peer = x.culprit
	default:
		select {
		case <-x.c.Done():
		case <-time.After(20 * time.Second):
			return x.wrongf("ranks %d and %d receive from each other for 20 s, and nothing fails", x.culprit, x.other)
		}
		return ccl.Barrier(x.ctx, x.c)
	}
	err := ccl.Recv(x.ctx, x.c, make([]float32, 3), peer)
	if text := fmt.Sprint(err); !x.r.p.far && !strings.Contains(text, "deadlock: rank") {
		return x.wrongf("ranks %d and %d receive from each other, and are not told: %s", x.culprit, x.other, text)
	}
	return err
}

// untilError makes calls until one fails.
func (s *scene) untilError(ctx context.Context) error {
	for range 100_000 {
		p := s.draw()
		err := p.block(ctx)
		if text := p.check(err != nil); text != "" {
			return s.wrongf("%s", text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// queueOn queues calls, over which the culprit calls Abort. Unheard, the others do not wait: their Close tells.
func (x *failure) queueOn(mine bool) error {
	if mine {
		time.AfterFunc(x.delay, func() { x.c.Abort(errors.New("on purpose")) })
	}
	q := x.c.On(ccl.NewHostStream())
	if x.t == unheard {
		if !mine {
			q.AllReduce(ccl.BufOf(make([]int32, 1000)), ccl.BufOf(make([]int32, 1000)), ccl.Sum)
		}
		<-x.c.Done()
		return x.c.Close()
	}
	for {
		var all []prepared
		var works []ccl.Work
		for range 4 {
			p := x.draw()
			all, works = append(all, p), append(works, p.queue(q))
		}
		var first error
		for i, w := range works {
			err := x.wait(w)
			if text := all[i].check(err != nil); text != "" {
				return x.wrongf("%s", text)
			}
			first = cmp.Or(first, err)
		}
		if first != nil {
			return first
		}
	}
}

// beLate has the culprit come after the call has failed.
func (x *failure) beLate(mine bool) error {
	if mine {
		select {
		case <-x.c.Done():
		case <-time.After(20 * time.Second):
			return x.wrongf("%v: rank %d is late for 20 s, and nothing fails", x.t, x.culprit)
		}
	}
	ctx := x.ctx
	if x.c.Rank() == x.other && x.t != late {
		if x.t == deadline && x.own.IntN(2) == 0 {
			q := x.c.On(nil).Within(x.limit)
			if x.id%2 == 0 {
				return q.AllReduce(ccl.BufOf(make([]float32, 3)), ccl.BufOf(make([]float32, 3)), ccl.Sum).Wait(ctx)
			}
			return q.Barrier().Wait(ctx)
		}
		inner, cancel := context.WithTimeout(ctx, x.limit)
		defer cancel()
		ctx = inner
	}
	if x.t == monitored {
		return ccl.MonitoredBarrier(ctx, x.c)
	}
	if x.id%2 == 0 {
		return ccl.AllReduce(ctx, x.c, make([]float32, 3), make([]float32, 3), ccl.Sum)
	}
	return ccl.Barrier(ctx, x.c)
}

// differ has the culprit make another call than the others.
func (x *failure) differ(mine bool) error {
	n := 1 + x.rnd.IntN(3000)
	way, at := x.rnd.IntN(4), x.rnd.IntN(5)
	for i := range 100_000 {
		var err error
		switch other := mine && i == at; {
		case other && way == 0:
			err = ccl.AllReduce(x.ctx, x.c, make([]float32, n+1), make([]float32, n+1), ccl.Sum)
		case other && way == 1:
			err = ccl.AllReduce(x.ctx, x.c, make([]int32, n), make([]int32, n), ccl.Sum)
		case other && way == 2:
			err = ccl.AllReduce(x.ctx, x.c, make([]float32, n), make([]float32, n), ccl.Max)
		case other:
			err = ccl.Barrier(x.ctx, x.c)
		default:
			err = ccl.AllReduce(x.ctx, x.c, make([]float32, n), make([]float32, n), ccl.Sum)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shrink goes on with all ranks: none was lost.
func (x *failure) shrink() error {
	c, err := x.c.Shrink(x.ctx)
	if err != nil {
		return fmt.Errorf("step %d: Shrink after %v: %w", x.step, x.t, err)
	}
	all := make([]int, len(x.seats))
	for r := range all {
		all[r] = r
	}
	return x.r.newScene(x.ctx, x.c, x.seats, x.step, x.depth, x.id).on(c, all, 0)
}

// judgeEnds compares what the ranks of one Comm have been told. misnamed says that a mismatch names another rank than the odd one.
func judgeEnds(ends []end) (text string, misnamed bool) {
	first := ends[0]
	fail := func(e end, format string, args ...any) (string, bool) {
		text := fmt.Sprintf("step %d, %v by seats %v, seat %d: %s", e.Step, e.Trouble, e.Culprits, e.Seat, fmt.Sprintf(format, args...))
		for _, e := range ends {
			text += fmt.Sprintf("\n    seat %d: code %v, peer %d, missing %v: %s", e.Seat, e.Code, e.Peer, e.Missing, e.Text)
		}
		return text, false
	}
	if len(ends) != first.Of {
		return fail(first, "%d ranks of %d say how it ended", len(ends), first.Of)
	}
	code := map[trouble]ccl.Code{aborts: ccl.ErrAborted, queuesOn: ccl.ErrAborted, resets: ccl.ErrAborted, unheard: ccl.ErrAborted, cancels: ccl.ErrCanceled, closes: ccl.ErrClosed,
		deadline: ccl.ErrTimeout, late: ccl.ErrTimeout, monitored: ccl.ErrTimeout, circle: ccl.ErrTimeout, mismatch: ccl.ErrMismatch, killed: ccl.ErrRankLost}[first.Trouble]
	others := slices.DeleteFunc(slices.Clone(ends), func(e end) bool { return first.Trouble == mismatch && slices.Contains(e.Culprits, e.Seat) })
	if first.Trouble == resets && first.Code == ccl.ErrBackend && strings.Contains(first.Text, "broke: ") {
		code = ccl.ErrBackend
	}
	for _, e := range ends {
		switch {
		case e.Code != code:
			return fail(e, "code %v, not %v", e.Code, code)
		case e.Took > bound:
			return fail(e, "told after %v", e.Took)
		}
	}
	for _, e := range others {
		known := slices.Contains(e.Culprits, e.Peer)
		switch {
		case e.Trouble != mismatch && e.Peer != others[0].Peer || !slices.Equal(e.Missing, others[0].Missing):
			return fail(e, "another peer, or others missing, than at seat %d", others[0].Seat)
		case e.Trouble == mismatch:
			misnamed = misnamed || !known && e.Of > 2
		case e.Trouble == resets, e.Trouble == circle:
		case (e.Trouble == deadline || e.Trouble == monitored && e.Far) && e.Peer == -1 && len(e.Missing) == 0:
		case e.Trouble == deadline && !known && slices.Contains(e.Missing, e.Peer) && len(e.Missing) <= 2 && neverCame.MatchString(e.Text):
		case !known:
			return fail(e, "it names seat %d", e.Peer)
		case e.Trouble == late || e.Trouble == monitored || e.Trouble == deadline:
			if !slices.Equal(e.Missing, e.Culprits) {
				return fail(e, "missing are %v", e.Missing)
			}
		case e.Trouble == killed && !e.Certain:
			return fail(e, "the end of a process that was killed is certain")
		}
	}
	return "", misnamed
}

// neverCame is of a rank whose context ends and that is missing itself: on a busy machine it had ended before the call
// began. Who else is missing may not be known then.
var neverCame = regexp.MustCompile(`timed out at rank \d+( \(world rank \d+\))?; no response from: ranks? `)

// bound is ten times what is promised, and more: a machine with many jobs is slow.
const bound = 15 * time.Second
