package tp

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
)

// replicated tells f of the runs of elements of a rank's part that other ranks have, too.
func (l Layout) replicated(size int, f func(at, n int)) {
	_, inner, outer := l.split()
	at, from, n := 0, 0, 0
	for range outer {
		for i := range l.matrices() {
			k := l.share(l.sizeOf(i), size) * inner
			switch {
			case l.replicas(l.sizeOf(i), size) > 1:
				if n == 0 {
					from = at
				}
				n += k
			case n > 0:
				f(from, n)
				n = 0
			}
			at += k
		}
	}
	if n > 0 {
		f(from, n)
	}
}

// SumReplicas sums the gradients of units that several ranks have by Layout.Replicate, as the keys
// and values of a model with fewer heads of them than ranks: each of these ranks has the gradient
// of its own queries alone. It follows the backward pass, and comes before what averages over
// data-parallel ranks. grad is that of this rank's part of l; what other ranks do not have stays as
// it is.
//
// replicas are the ranks that have the same units as this one: g.Comm.Split(ctx, rank/k, rank) for
// k = l.Replicas(size), or the last dimension of a mesh whose tp is two dimensions joined. Where
// nothing is replicated it may be nil, and nothing is sent. Once they begin alike, what the ranks
// have stays alike to the bit. In a norm over all ranks it must count once. zero.Options.NormOf
// takes whole parameters: give queries a Layout and a parameter of their own, and leave out that of
// keys and values where rank%k is not 0.
func SumReplicas[T Float](ctx context.Context, g *Group, replicas *ccl.Comm, l Layout, grad []T) error {
	if err := g.usable("SumReplicas"); err != nil {
		return err
	}
	rank, size := g.Comm.Rank(), g.Comm.Size()
	k := l.Replicas(size)
	switch {
	case k == 0:
		return g.refuseBoth(replicas, l.Check(size))
	case len(grad) != l.length(size):
		return g.refuseBoth(replicas, fmt.Errorf("tp: SumReplicas: %d gradients of a part of %d elements", len(grad),
			l.length(size)))
	case k == 1:
		return nil
	case replicas == nil:
		return g.refuseBoth(nil, fmt.Errorf("tp: SumReplicas: units are on %d ranks each, and there is no Comm of these", k))
	case replicas.Size() != k || replicas.Rank() != rank%k:
		return g.refuseBoth(replicas, fmt.Errorf("tp: SumReplicas: rank %d shares units with ranks %d to %d, and is rank %d of %d of the Comm given",
			rank, rank/k*k, rank/k*k+k-1, replicas.Rank(), replicas.Size()))
	}
	runs, total, first := 0, 0, 0
	l.replicated(size, func(at, n int) {
		if runs == 0 {
			first = at
		}
		runs, total = runs+1, total+n
	})
	defer g.count(time.Now(), ccl.TypeOf[T]().Size()*total)
	x := grad[first : first+total]
	if runs > 1 {
		x, _ = g.packed.([]T)
		if cap(x) < total {
			x = make([]T, total)
			g.packed = x
		}
		x = x[:0]
		l.replicated(size, func(at, n int) { x = append(x, grad[at:at+n]...) })
	}
	if err := ccl.AllReduce(ctx, replicas, x, x, ccl.Sum); err != nil {
		return g.refuseBoth(replicas, fmt.Errorf("tp: SumReplicas: %w", err)) // the ranks of other units wait in g.Comm
	}
	if runs > 1 {
		l.replicated(size, func(at, n int) {
			copy(grad[at:at+n], x)
			x = x[n:]
		})
	}
	return nil
}

// refuseBoth is refuse where ranks may wait in another Comm.
func (g *Group) refuseBoth(other *ccl.Comm, err error) error {
	other.Abort(err)
	return g.refuse(err)
}
