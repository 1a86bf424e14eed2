package pp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
	"github.com/goccl/goccl/train/mesh"
)

// Stage is one rank's part of the model. It owns the buffers, two for each direction and way, on
// the host or on a device. In is not called where the pipeline begins, nor Out where it ends:
// forward the first and the last part of the model, backward the other way round.
type Stage interface {
	// In returns the buffer that s takes its input from: the activations of the part before, or the gradients of those
	// that this part has sent. A Pipeline receives into it ahead of time, and leaves it alone while s runs.
	In(s Step) ccl.Buf
	// Out returns the buffer with what s has made. It belongs to the Pipeline until the next but one
	// step in this direction that has an output: a step whose output goes nowhere must not write
	// there.
	Out(s Step) ccl.Buf
	// Run computes one step. An error ends Run on all stages.
	Run(ctx context.Context, s Step) error
}

// Options are those of New.
type Options struct {
	// Chunks is how many model chunks a rank has; 0 is 1. All ranks have as many.
	Chunks int
	// Stream makes the Streams to send and receive on, one for each link; nil stands for HostStreams.
	Stream func() ccl.Stream
}

// Pipeline is the links between stages: a Comm for each pair of neighbors and direction, so that no message waits for
// one that goes elsewhere, and a schedule that Check takes cannot deadlock. They fail together, with the Comm of all
// stages.
type Pipeline struct {
	c      *ccl.Comm
	chunks int
	links  []*ccl.Comm
	closed bool
	untie  func()
	lanes  [2]lane         // forward, backward
	proven map[uint64]bool // schedules that Check has taken, by their hash

	// Of the last Run:
	last   Schedule
	micros int
	facts  *same.Facts // nil where they were wrong
	steps  []Step
}

// lane is one direction through a stage.
type lane struct {
	recv, send        ccl.Queue
	from, to          int // ranks in the links
	ins               []int
	posted, got, sent int
	recvs, sends      [2]ccl.Work

	// Of one stage with several chunks: where its own messages wait for each other, and how many have gone over.
	alone   bool
	in, out [2]ccl.Buf
	handed  int
}

// New makes the links among the ranks of c, of which rank 0 is the first stage. It is collective
// over c, and costs one Split for each direction and class of links: 4, with interleaving 6. One
// stage with several chunks passes messages on to itself, by a copy.
func New(ctx context.Context, c *ccl.Comm, o *Options) (*Pipeline, error) {
	if o == nil {
		o = &Options{}
	}
	p := &Pipeline{c: c, chunks: cmp.Or(o.Chunks, 1), proven: map[uint64]bool{}, untie: func() {}}
	var bad error
	if p.chunks < 0 {
		bad = fmt.Errorf("pp: %d chunks: there must be at least one", p.chunks)
	}
	if err := same.Args(ctx, c, "pp", bad, fmt.Sprintf("%d chunks", p.chunks)); err != nil {
		return nil, err
	}
	for direction := range p.lanes {
		if err := p.connect(ctx, direction, o.Stream); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	if len(p.links) > 0 {
		p.untie = mesh.Tie(append([]*ccl.Comm{c}, p.links...)...)
	}
	return p, nil
}

// connect makes the links of one direction. Link e joins the stages e and e+1; a rank has two of them at most, in two
// different classes, each of which one Split makes.
func (p *Pipeline) connect(ctx context.Context, direction int, stream func() ccl.Stream) error {
	n, r := p.c.Size(), p.c.Rank()
	classes := []func(e int) bool{
		func(e int) bool { return e%2 == 0 && e < n-1 },
		func(e int) bool { return e%2 == 1 && e < n-1 },
	}
	if p.chunks > 1 { // from the last stage to the next chunk of the first
		classes = append(classes, func(e int) bool { return e == n-1 })
	}
	if n == 1 && p.chunks == 1 {
		return nil
	}
	p.lanes[direction].alone = n == 1
	for _, has := range classes {
		color, mine, peer := -1, 0, 0
		if before := (r + n - 1) % n; has(r) {
			color, mine, peer = r, 0, 1
		} else if has(before) {
			color, mine, peer = before, 1, 0
		}
		link, err := p.c.Split(ctx, color, mine) // the earlier stage is rank 0
		if err != nil {
			return err
		}
		if link == nil {
			continue
		}
		p.links = append(p.links, link)
		link.SetName(fmt.Sprintf("%s, pp %s %d-%d", p.c.Name(), []string{"forward", "backward"}[direction], color,
			(color+1)%n))
		var s ccl.Stream
		if stream != nil {
			s = stream()
		}
		l := &p.lanes[direction]
		if sends := (mine == 0) == (direction == 0); sends || n == 1 {
			l.send, l.to = link.On(s), peer
		} else {
			l.recv, l.from = link.On(s), peer
		}
	}
	return nil
}

// Close closes the links; the Comm that New was given stays open. It is collective: a rank that
// closes ends a Run of others.
func (p *Pipeline) Close() error {
	p.untie()
	var err error
	for _, l := range p.links {
		err = errors.Join(err, l.Close())
	}
	p.links, p.closed = nil, true
	return err
}

// Stats are those of one Run.
type Stats struct {
	Busy, Wall time.Duration // in Stage.Run; in all
	Held       int           // the most micro batches, of all chunks, that were held at once
	Bytes      int64         // sent
}

// Bubble is the measured idle share.
func (s Stats) Bubble() float64 {
	if s.Wall <= 0 {
		return 0
	}
	return 1 - float64(s.Busy)/float64(s.Wall)
}

// Run runs one step of m micro batches. It is collective: all ranks pass the same schedule and m,
// which it makes sure of by one AllReduce of 24 bytes, and a schedule must pass Check. If anything
// fails on one rank, the links and the Comm of the stages fail, with that rank's name: Run returns
// an error on all ranks that have not done all their steps, and the next call on the others. No
// buffer of a Stage is in use when Run has returned.
func (p *Pipeline) Run(ctx context.Context, s Schedule, micros int, st Stage) (Stats, error) {
	if err := p.agree(ctx, s, micros, st); err != nil {
		return Stats{}, err
	}
	var stats Stats
	start := time.Now()
	err := p.finish(ctx, p.run(ctx, st, &stats))
	stats.Wall = time.Since(start)
	return stats, err
}

// finish waits for the calls under way. If there is an error, it ends them first, for the buffers are the Stage's again
// when Run returns.
func (p *Pipeline) finish(ctx context.Context, err error) error {
	works := func(f func(w ccl.Work)) {
		for d := range p.lanes {
			l := &p.lanes[d]
			for _, w := range [4]ccl.Work{l.recvs[0], l.recvs[1], l.sends[0], l.sends[1]} {
				f(w)
			}
		}
	}
	works(func(w ccl.Work) {
		if err == nil {
			err = p.cause(w.Wait(ctx))
		}
	})
	if err != nil {
		if !p.hasFailed() { // else this rank has only heard of it
			p.c.Abort(err)
		}
		works(func(w ccl.Work) { _ = w.Wait(context.WithoutCancel(ctx)) })
	}
	for d := range p.lanes {
		p.lanes[d].recvs, p.lanes[d].sends = [2]ccl.Work{}, [2]ccl.Work{}
	}
	return err
}

// hasFailed reports whether a Comm of the pipeline has failed.
func (p *Pipeline) hasFailed() bool {
	return p.c.Err() != nil || slices.ContainsFunc(p.links, func(l *ccl.Comm) bool { return l.Err() != nil })
}

// cause is why a message failed with err: the first failure of the Comm of all stages, where there
// is one. A link is failed by its own rank, when that hears of a failure elsewhere.
func (p *Pipeline) cause(err error) error {
	if errors.Is(err, ccl.ErrAborted) && p.hasFailed() && same.Fails(p.c) {
		return p.c.Err()
	}
	return err
}

// failed is why a message of step s failed.
func (p *Pipeline) failed(what string, s Step, err error) error {
	return fmt.Errorf("pp: %s %v: %w", what, s, p.cause(err))
}

// agree lays out the steps of this stage, and makes sure that all ranks run the same schedule. A
// Run like the one before has its steps already.
func (p *Pipeline) agree(ctx context.Context, s Schedule, micros int, st Stage) error {
	switch {
	case p.closed:
		return same.Args(ctx, p.c, "pp", errors.New("the Pipeline is closed"))
	case st == nil:
		return same.Args(ctx, p.c, "pp", errors.New("the Stage is nil"))
	}
	if s == nil {
		s = OneFOneB
	}
	if p.facts == nil || micros != p.micros || !identical(s, p.last) {
		p.lay(s, micros)
	}
	err := p.facts.Agree(ctx, p.c)
	if err != nil {
		p.facts = nil
	}
	return err
}

// identical reports whether a and b are one function with the same variables.
func identical(a, b Schedule) bool {
	return *(*unsafe.Pointer)(unsafe.Pointer(&a)) == *(*unsafe.Pointer)(unsafe.Pointer(&b))
}

// lay lays out the steps of this stage, and what to compare with the other ranks.
func (p *Pipeline) lay(s Schedule, micros int) {
	p.last, p.micros = s, micros
	p.steps = p.steps[:0]
	h := fnv.New64a()
	fmt.Fprintln(h, micros) // a schedule may yield the same steps for another number of them
	for r := range p.c.Size() {
		for x := range s(p.c.Size(), r, micros) {
			fmt.Fprintln(h, r, x.Backward, x.Weights, x.Micro, x.Chunk)
			if r == p.c.Rank() {
				p.steps = append(p.steps, Step{Backward: x.Backward, Weights: x.Weights, Micro: x.Micro, Chunk: x.Chunk})
			}
		}
	}
	var bad error
	if sum := h.Sum64(); !p.proven[sum] {
		if _, bad = check(s, p.c.Size(), micros, p.chunks); bad == nil {
			p.proven[sum] = true
		}
	}
	p.facts = same.New("pp", bad, fmt.Sprintf("%d micro batches", micros), fmt.Sprintf("a schedule of hash %x", h.Sum64()))
}

// run is Run without what comes before and after.
func (p *Pipeline) run(ctx context.Context, st Stage, stats *Stats) error {
	for d := range p.lanes {
		l := &p.lanes[d]
		l.ins, l.posted, l.got, l.sent, l.handed = l.ins[:0], 0, 0, 0, 0
	}
	for i, s := range p.steps {
		if in, _ := p.ends(s); in {
			l := &p.lanes[direction(s)]
			l.ins = append(l.ins, i)
		}
	}
	for d := range p.lanes {
		p.post(st, &p.lanes[d])
		p.post(st, &p.lanes[d])
	}
	held, last := 0, lets(p.steps)
	for _, s := range p.steps {
		l := &p.lanes[direction(s)]
		in, out := p.ends(s)
		if in {
			if err := l.recvs[l.got%2].Wait(ctx); err != nil {
				return p.failed("input of the", s, err)
			}
			s.In = l.got % 2
		}
		if out {
			s.Out = l.sent % 2
			if err := l.sends[s.Out].Wait(ctx); err != nil {
				return p.failed("what was sent before the", s, err)
			}
		}
		if !s.Backward && !s.Weights {
			held++
			stats.Held = max(stats.Held, held)
		}
		if last(s) { // whose activations nothing will ask for
			held--
		}
		began := time.Now()
		if err := st.Run(ctx, s); err != nil {
			return fmt.Errorf("pp: stage %d, %v: %w", p.c.Rank(), s, err)
		}
		stats.Busy += time.Since(began)
		if in {
			l.got++
			p.post(st, l)
		}
		if out {
			b := st.Out(s)
			if l.alone {
				l.out[s.Out] = b
			} else {
				l.sends[s.Out] = l.send.Send(b, l.to)
			}
			l.sent++
			l.hand()
			stats.Bytes += int64(b.Len()) * int64(b.Type().Size())
		}
	}
	return nil
}

// post asks for the next message of a direction, if one of its two buffers is free.
func (p *Pipeline) post(st Stage, l *lane) {
	if l.posted == len(l.ins) || l.posted >= l.got+2 {
		return
	}
	s := p.steps[l.ins[l.posted]]
	s.In = l.posted % 2
	if l.alone {
		l.in[s.In] = st.In(s)
	} else {
		l.recvs[s.In] = l.recv.Recv(st.In(s), l.from)
	}
	l.posted++
	l.hand()
}

// hand copies what a stage that is alone has sent to itself and asked for. Both of a Comm with one
// rank, send and receive, would wait for each other; a gather over it is the copy, on a device,
// too.
func (l *lane) hand() {
	for ; l.alone && l.handed < min(l.sent, l.posted); l.handed++ {
		k := l.handed % 2
		w := l.send.AllGather(l.in[k], l.out[k])
		l.recvs[k], l.sends[k] = w, w
	}
}

// ends says whether a step takes input from another stage, and whether it gives output to one.
func (p *Pipeline) ends(s Step) (in, out bool) {
	first := p.c.Rank() == 0 && s.Chunk == 0
	last := p.c.Rank() == p.c.Size()-1 && s.Chunk == p.chunks-1
	switch {
	case s.Weights:
		return false, false
	case s.Backward:
		return !last, !first
	}
	return !first, !last
}

func direction(s Step) int {
	if s.Backward {
		return 1
	}
	return 0
}
