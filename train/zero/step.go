package zero

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/paged"
	"github.com/goccl/goccl/train/optim"
)

// ErrNotFinite is the cause of Step's error where the norm of the gradients is infinite or no number. The shards are as
// they were, on all ranks, and the next step may follow: a program may skip a few such steps.
var ErrNotFinite = errors.New("the norm of the gradients is not finite")

// Step waits for the gradients, averages them over the micro batches, clips them, and updates every
// shard. At stages 1 and 2 it then starts gathering the parameters, in forward order, and does not
// wait. An error leaves the shards as they were, or the Comm has failed: it is aborted if u fails,
// if a unit was not reduced, and if ctx ends first.
func (m *Model[P, M]) Step(ctx context.Context, u Update[M]) error {
	return m.step(ctx, u.bufs(), nil)
}

// StepWith is Step for an optimizer that goes over all pieces several times, as that of package
// optim/whole does for tensors that shards cut: in run, each updates all pieces of this rank. All
// ranks call it equally often. Between two calls run may use the model's Comm, which its error aborts.
func (m *Model[P, M]) StepWith(ctx context.Context, run func(each func(Update[M]) error) error) error {
	return m.step(ctx, nil, run)
}

// StepBufs is Step in the Memory of Options: u works in the order of its Stream, and need not wait.
func (m *Model[P, M]) StepBufs(ctx context.Context, u func(p Piece, w, g ccl.Buf) error) error {
	return m.step(ctx, u, nil)
}

// bufs is u on slices that are Bufs.
func (u Update[M]) bufs() func(p Piece, w, g ccl.Buf) error {
	if u == nil {
		return nil
	}
	return func(p Piece, w, g ccl.Buf) error {
		ws, ok := ccl.SliceOf[M](w)
		gs, _ := ccl.SliceOf[M](g)
		if !ok {
			return errors.New("the memory is a device's; StepBufs updates it")
		}
		return u(p, ws, gs)
	}
}

// step lets u, or the Updates of run, update all pieces. After an error it aborts the Comms: some
// shards may have been updated, and other ranks wait for this one. A failure that came from another
// Comm is known to its ranks; those of NormOver tell theirs, if mesh ties the two Comms.
func (m *Model[P, M]) step(ctx context.Context, u func(p Piece, w, g ccl.Buf) error,
	run func(each func(Update[M]) error) error) (err error) {
	if m.closed {
		return errClosed
	}
	defer func() {
		if err != nil && !errors.Is(err, ErrNotFinite) && (ctx.Err() != nil || !errors.As(err, new(*ccl.Error))) {
			m.aborted(err)
		}
	}()
	if err := m.ready(); err != nil {
		return err
	}
	if run != nil || m.micro > 1 || m.checks() { // run need not wait for any gradients
		if err := m.settle(ctx); errors.Is(err, ErrNotFinite) {
			return cmp.Or(m.next(), err)
		} else if err != nil {
			return err
		}
	}
	if run == nil {
		err = m.sweep(ctx, u)
	} else if err = run(func(u Update[M]) error { return m.sweep(ctx, u.bufs()) }); err != nil {
		m.c.Abort(err) // whatever it is: one about an argument has ended no Comm
	}
	if err != nil {
		return err
	}
	if err := m.next(); err != nil {
		return err
	}
	switch m.o.Stage {
	case 1, 2:
		m.gatherAll()
	case 3:
		m.prefetch()
	}
	return nil
}

// sweep updates all pieces by u.
func (m *Model[P, M]) sweep(ctx context.Context, u func(p Piece, w, g ccl.Buf) error) error {
	if u == nil {
		return errors.New("zero: Step: the Update is nil")
	}
	if m.disk != nil {
		next := len(m.units)
		return m.disk.Update(ctx, func() (paged.Turn, error) {
			for next--; next >= 0 && m.units[next].frozen; next-- {
			}
			if next < 0 {
				return paged.Turn{Unit: -1}, nil
			}
			return turn(next, &m.units[next]), m.wait(ctx, m.units[next].reduced, next, "averaging gradients")
		}, func(i, k, lo, hi int, w, g ccl.Buf) error {
			p := m.units[i].pieces[k]
			from := p.Lo + lo - p.At
			if err := u(Piece{i, p.Param, from, from + hi - lo, lo}, w, g); err != nil {
				return m.aborted(fmt.Errorf("zero: the update of parameter %d of unit %d: %w", p.Param, i, err))
			}
			return nil
		})
	}
	for i := len(m.units) - 1; i >= 0; i-- { // as they were reduced
		if m.units[i].frozen {
			continue
		}
		if err := m.wait(ctx, m.units[i].reduced, i, "averaging gradients"); err != nil {
			return err
		}
		if err := m.update(i, u); err != nil {
			return m.aborted(err)
		}
	}
	return nil
}

// ready says what keeps the step from ending.
func (m *Model[P, M]) ready() error {
	if m.misuse != nil {
		return m.misuse
	}
	if e := m.c.Err(); e != nil { // which is why units were not reduced
		return fmt.Errorf("zero: Step: %w", e)
	}
	var never, used []int
	for i := range m.units {
		if m.units[i].micro != m.micro && !m.units[i].frozen {
			never = append(never, i)
		}
		if m.units[i].uses > 0 {
			used = append(used, i)
		}
	}
	if never != nil {
		return fmt.Errorf("zero: Step: units %d were not reduced %d times; unit %d %d times", never, m.micro, never[0], m.units[never[0]].micro)
	}
	if used != nil {
		return fmt.Errorf("zero: Step: units %d are in use; Release them first", used)
	}
	return nil
}

// update applies u to the shard of unit i.
func (m *Model[P, M]) update(i int, u func(p Piece, w, g ccl.Buf) error) error {
	x := &m.units[i]
	g := x.gshard
	if g.Type() != x.master.Type() {
		g = m.grad.From(0, g.Len())
		if err := m.near.Convert(g, x.gshard); err != nil {
			return fmt.Errorf("zero: unit %d: %w", i, err)
		}
	}
	if m.off != nil {
		var err error
		if g, err = m.off.Gradients(g); err != nil {
			return fmt.Errorf("zero: unit %d: %w", i, err)
		}
	}
	for _, p := range x.pieces {
		if x.still[p.Param] {
			continue
		}
		n := p.At + p.Hi - p.Lo
		if err := u(p, x.master.From(p.At, n), g.From(p.At, n)); err != nil {
			return fmt.Errorf("zero: the update of parameter %d of unit %d: %w", p.Param, i, err)
		}
	}
	return m.narrow(x)
}

// turn is the update of unit x where a Disk has a part of it. What is not updated has an empty span.
func turn[P Float](i int, x *unit[P]) paged.Turn {
	t := paged.Turn{Unit: i, Master: x.master, Grad: x.gshard, Shard: x.shard}
	for _, p := range x.pieces {
		s := paged.Span{Lo: p.At, Hi: p.At + p.Hi - p.Lo}
		if x.still[p.Param] {
			s.Hi = s.Lo
		}
		t.Spans = append(t.Spans, s)
	}
	return t
}

// narrow brings the master copy into the parameters, where a Disk does not.
func (m *Model[P, M]) narrow(u *unit[P]) error {
	if u.frozen || m.disk != nil || m.off == nil && u.master.Type() == u.shard.Type() { // it is the same memory
		return nil
	}
	return m.near.Convert(u.shard, u.master)
}

// gatherAll begins to make all units whole, in forward order, at stages 1 and 2.
func (m *Model[P, M]) gatherAll() {
	q := m.queue(m.c)
	for i := range m.units {
		u := &m.units[i]
		if u.frozen { // which is as it was
			continue
		}
		m.begin()
		u.gathered = m.end(q.Numbered(i+1).AllGather(u.whole, ccl.InPlace()))
		m.stats.Gathered += int64(u.whole.Len() * u.whole.Type().Size())
	}
}

// next begins the next step.
func (m *Model[P, M]) next() error {
	for i := range m.units {
		u := &m.units[i]
		u.micro, u.reduced = 0, ccl.Work{}
		m.drop(u) // what is whole at stage 3 is old
		if m.o.Stage < 2 && !u.frozen {
			if err := m.near.Zero(u.grads); err != nil {
				return fmt.Errorf("zero: unit %d: %w", i, err)
			}
		}
	}
	m.before, m.order, m.at = m.order, m.before[:0], 0
	m.micro = m.o.Micro
	m.stats.Comm = time.Duration(m.comm.Swap(0))
	m.last, m.stats = m.stats, Stats{}
	return nil
}

// checks reports whether the norm is computed.
func (m *Model[P, M]) checks() bool { return m.o.Clip > 0 || !m.o.Unchecked }

// settle waits for all gradients, averages them over the micro batches, and clips them.
func (m *Model[P, M]) settle(ctx context.Context) error {
	for i := len(m.units) - 1; i >= 0; i-- {
		u := &m.units[i]
		if u.frozen {
			continue
		}
		if err := m.wait(ctx, u.reduced, i, "averaging gradients"); err != nil {
			return err
		}
		if m.micro > 1 && !m.o.Sum && !m.disk.Far() && !(m.accumulates && m.o.Stage < 2) { // which did so
			if err := m.near.Divide(u.gshard, m.micro); err != nil {
				return fmt.Errorf("zero: unit %d: %w", i, err)
			}
		}
	}
	if !m.checks() {
		return nil
	}
	sum, where, err := m.squares(ctx)
	if err != nil {
		return err
	}
	if m.norm = math.Sqrt(sum); math.IsNaN(m.norm) || math.IsInf(m.norm, 0) {
		return fmt.Errorf("zero: Step: %s: %w", where, ErrNotFinite)
	}
	by := optim.ClipFactor(m.norm, m.o.Clip)
	if m.o.Clip <= 0 {
		by = 1
	}
	m.disk.ScaleBy(by)
	if by == 1 || m.disk.Far() {
		return nil
	}
	for i := range m.units {
		if m.units[i].frozen {
			continue
		}
		if err := m.near.Scale(m.units[i].gshard, by); err != nil {
			return fmt.Errorf("zero: unit %d: %w", i, err)
		}
	}
	return nil
}

// squares is the sum of the squares of all gradients, and, if it is not finite, where that comes from. The parts are
// added in the order of ranks, at stage 0 as well, so all stages get the same bits.
func (m *Model[P, M]) squares(ctx context.Context) (sum float64, where string, err error) {
	for p := range m.owned {
		if err := m.squaresOf(p); err != nil {
			return 0, "", fmt.Errorf("zero: the norm of gradients: %w", err)
		}
		m.norms.sums[0], m.norms.sums[1] = 0, 0 // and the first unit that is not finite, from 1 on
		next := 0
		for i := range m.units {
			for _, x := range m.units[i].seen[p] {
				s := m.norms.squared[next]
				odd := math.IsNaN(s) || math.IsInf(s, 0)
				if x.counts || odd { // and then so is the norm, on all ranks
					m.norms.sums[0] += s
				}
				if odd && m.norms.sums[1] == 0 {
					m.norms.sums[1] = float64(i + 1)
				}
				next++
			}
		}
		copy(m.norms.parts[2*p:], m.norms.sums)
	}
	began := time.Now()
	if m.o.Stage > 0 {
		if err := ccl.AllGather(ctx, m.c, m.norms.parts, m.norms.sums); err != nil {
			return 0, "", fmt.Errorf("zero: the norm of gradients: %w", err)
		}
	}
	m.norms.sums[0], m.norms.sums[1] = 0, 0
	for p := range m.c.Size() {
		m.norms.sums[0] += m.norms.parts[2*p]
		if bad := m.norms.parts[2*p+1]; bad != 0 && where == "" {
			where = fmt.Sprintf("unit %d, part %d of %d", int(bad)-1, p, m.c.Size())
		}
	}
	if where == "" && math.IsInf(m.norms.sums[0], 0) { // each square is finite, but their sum is not
		where = "all units together"
	}
	if m.o.NormOver != nil {
		if err := ccl.AllReduce(ctx, m.o.NormOver, m.norms.sums, m.norms.sums, ccl.Sum); err != nil {
			return 0, "", fmt.Errorf("zero: the norm of gradients over NormOver: %w", err)
		}
		if where == "" {
			where = "units of other ranks of NormOver"
		}
	}
	m.stats.Exposed += time.Since(began)
	return m.norms.sums[0], where, nil
}

// summer is a Memory that computes many sums and waits once.
type summer interface {
	SumsOfSquares(sums []float64, src ...ccl.Buf) error
}

// squaresOf leaves the sums of squares of the pieces of part p that are updated in m.norms.squared.
func (m *Model[P, M]) squaresOf(p int) (err error) {
	if m.disk.Far() { // which has computed them
		m.norms.squared = m.disk.Squares(m.norms.squared[:0])
		return nil
	}
	m.norms.counted = m.norms.counted[:0]
	for i := range m.units {
		u := &m.units[i]
		for _, x := range u.seen[p] {
			m.norms.counted = append(m.norms.counted, u.gshard.From(x.At, x.At+x.Hi-x.Lo))
		}
	}
	n := len(m.norms.counted)
	m.norms.squared = slices.Grow(m.norms.squared[:0], n)[:n]
	if s, ok := m.near.(summer); ok {
		return s.SumsOfSquares(m.norms.squared, m.norms.counted...)
	}
	for k := 0; k < len(m.norms.counted) && err == nil; k++ {
		m.norms.squared[k], err = m.near.SumSquares(m.norms.counted[k])
	}
	return err
}
