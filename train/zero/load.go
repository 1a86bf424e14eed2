package zero

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/host"
	"github.com/goccl/goccl/train/internal/same"
)

// Load sets the parameters of unit i as they are on root, which alone needs full, a slice for each parameter. With
// Replicas that of the first replica alone needs it. It is collective: if ctx ends in it, the Comm fails.
func (m *Model[P, M]) Load(ctx context.Context, i int, full [][]M, root int) error {
	bad := m.usable("Load", i)
	first := m.o.Replicas == nil || m.o.Replicas.Rank() == 0
	switch {
	case bad != nil:
	case root < 0 || root >= m.c.Size():
		bad = fmt.Errorf("Load from rank %d of %d", root, m.c.Size())
	case first && m.c.Rank() == root:
		bad = fits(i, m.units[i].lens, full)
	}
	what := fmt.Sprintf("unit %d from rank %d", i, root)
	err := same.Args(ctx, m.c, "zero: Load", bad, what)
	if m.o.Replicas != nil {
		if err != nil {
			bad = unprefixed{err, "zero: Load: "}
		}
		err = same.Args(ctx, m.o.Replicas, "zero: Load", bad, what)
	}
	if err != nil {
		return err
	}
	if err := m.load(ctx, i, full, root, first); err != nil {
		return m.aborted(m.failed(i, "Load", err))
	}
	return nil
}

// unprefixed is an error that will get the prefix once more.
type unprefixed struct {
	error
	prefix string
}

func (e unprefixed) Error() string { return strings.TrimPrefix(e.error.Error(), e.prefix) }
func (e unprefixed) Unwrap() error { return e.error }

func fits[M Float](i int, lens []int, full [][]M) error {
	if len(full) != len(lens) {
		return fmt.Errorf("unit %d has %d parameters, not %d", i, len(lens), len(full))
	}
	for j, p := range full {
		if len(p) != lens[j] {
			return fmt.Errorf("parameter %d of unit %d has %d elements, not %d", j, i, lens[j], len(p))
		}
	}
	return nil
}

func (m *Model[P, M]) load(ctx context.Context, i int, full [][]M, root int, first bool) (err error) {
	u := &m.units[i]
	to, onHost := u.master, m.off != nil && !u.frozen
	t, n, on := to.Type(), to.Len(), m.disk.Master(i)
	if on.Is() {
		t, n = on.Type(), on.Len()
	}
	var all ccl.Buf // on root
	if first && m.c.Rank() == root {
		n := u.k * m.c.Size()
		if m.host != nil && t == ccl.TypeOf[M]() {
			all = ccl.BufOf(make([]M, n))
		} else if m.host != nil { // of a frozen unit
			all = ccl.BufOf(make([]P, n))
		} else {
			if all, err = m.mem.Alloc(t, n); err != nil {
				return err
			}
			defer m.mem.Free(all)
		}
		at := 0
		for _, p := range full {
			if err := m.near.Convert(all.From(at, at+len(p)), ccl.BufOf(p)); err != nil {
				return err
			}
			at += len(p)
		}
	}
	if onHost || on.Is() { // by way of the device, which the others' library reaches, or of memory
		if to, err = m.mem.Alloc(t, n); err != nil {
			return err
		}
		m.all = append(m.all, to) // after an error a call or the disk may still use it, until Close
	}
	var w ccl.Work
	switch q := m.queue(m.c); {
	case !first:
	case m.o.Stage > 0 && m.c.Rank() == root:
		w = q.Scatter(to, all, root)
	case m.o.Stage > 0:
		w = q.Scatter(to, to.From(0, 0), root)
	case m.c.Rank() == root:
		if err := m.near.Convert(to, all); err != nil {
			return err
		}
		fallthrough
	default:
		w = q.Broadcast(to, root)
	}
	if m.o.Replicas != nil {
		w = m.queue(m.o.Replicas).Broadcast(to, 0)
	}
	if err := w.Wait(ctx); err != nil {
		return err
	}
	if onHost {
		masters, _ := ccl.SliceOf[M](u.master)
		if err := m.off.Get(masters, to); err != nil {
			return err
		}
	}
	if on.Is() {
		if err := m.disk.D.Wait(ctx, on.Write(to)); err != nil {
			return err
		}
	}
	if onHost || on.Is() {
		m.all = m.all[:len(m.all)-1]
		_ = m.mem.Free(to)
	}
	return m.spread(ctx, i)
}

// aborted is err, with which it fails the Comms, unless they have failed.
func (m *Model[P, M]) aborted(err error) error {
	m.c.Abort(err)
	m.tell(err)
	return err
}

// Loaded says that Shard was filled for all units, as from a checkpoint, and makes the parameters what the shards say.
// It is collective: if ctx ends in it, the Comm fails.
func (m *Model[P, M]) Loaded(ctx context.Context) error {
	if m.closed {
		return errClosed
	}
	for i := range m.units {
		if err := m.spread(ctx, i); err != nil {
			return m.aborted(m.failed(i, "Loaded", err))
		}
	}
	return nil
}

// spread makes the parameters of unit i what the master copies say.
func (m *Model[P, M]) spread(ctx context.Context, i int) error {
	u := &m.units[i]
	if m.o.Stage == 3 {
		if u.uses > 0 { // the slices of its Params would have the parameters of other units
			return errors.New("the unit is in use; Release it first")
		}
		if err := u.gathered.Wait(ctx); err != nil { // gathered ahead; it is old
			return err
		}
		m.drop(u)
	}
	if err := errors.Join(m.narrow(u), m.disk.Narrow(ctx, i, u.shard)); err != nil {
		return err
	}
	u.gathered = ccl.Work{}
	if m.o.Stage == 1 || m.o.Stage == 2 {
		return m.queueOf(m.c, i).AllGather(u.whole, ccl.InPlace()).Wait(ctx)
	}
	return nil
}

// Close waits for what is on its way, and gives back the memory. It is not collective; but within a step, whose end the
// other ranks wait for, it aborts the Comm. What Params, Grads and Shard have returned must not be used any more.
func (m *Model[P, M]) Close() error {
	if m.closed {
		return nil
	}
	for i := range m.units {
		if u := &m.units[i]; u.micro > 0 || u.uses > 0 {
			if !same.Fails(m.c) {
				m.misused(fmt.Errorf("zero: Close within a step: unit %d is in use, or was reduced", i))
			}
			break
		}
	}
	m.closed = true
	ctx := context.Background()
	answered := m.disk.Closing()
	for i := range m.units { // whatever became of it
		u := &m.units[i]
		_, _ = u.gathered.Wait(ctx), u.reduced.Wait(ctx)
	}
	if m.host != nil {
		m.host.S.Do(host.Nothing).Wait(ctx)
		m.host.S.Close()
	}
	if err := answered(); err != nil { // the disk may still use what is given back here
		return err
	}
	var errs []error
	for _, b := range m.all {
		errs = append(errs, m.mem.Free(b))
	}
	return errors.Join(errs...)
}
