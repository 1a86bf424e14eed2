//go:build (nccl || rccl) && cgo && linux

package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/internal/op"
)

// placement is where a test's data lie.
type placement int

const (
	onDevice placement = iota
	onDeviceInPlace
	onHost
)

func (p placement) String() string { return [...]string{"device", "in place", "host"}[p] }

// perform makes a call, which may take limit, and compares what it gives.
func (r *rank) perform(ctx context.Context, e example, p placement) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if p == onHost {
		return r.performOnHost(ctx, e)
	}
	c, t := e.call, e.call.Type
	width := t.Size()
	src, want := encodeAll(t, e.src), encodeAll(t, e.want)
	srcAt, dstAt, together := inPlace(&e, r.group.Rank, r.group.Size)
	together = together && p == onDeviceInPlace
	srcAt, dstAt = srcAt*width, dstAt*width
	size := max(srcAt+len(src), dstAt+len(want))
	if !together {
		srcAt, dstAt = 0, (len(src)+255)&^255
		size = dstAt + len(want)
	}
	m, err := gpu.Alloc[byte](r.device, max(size, 1))
	if err != nil {
		return err
	}
	defer m.Free()
	all := make([]byte, max(size, 1))
	for i := range all {
		all[i] = 0x5A
	}
	copy(all[srcAt:], src)
	if err := m.Put(all); err != nil {
		return err
	}
	at, _ := m.Ptr()
	if src != nil {
		c.SrcAt = at + uintptr(srcAt)
	}
	if want != nil {
		c.DstAt = at + uintptr(dstAt)
	}
	if err := r.Issue(r.handle(), []*op.Call{&c}); err != nil {
		return err
	}
	if err := r.wait(ctx); err != nil {
		r.Abort() // or m could not be freed: the device would wait for the call that uses it
		return err
	}
	if err := m.Get(all); err != nil {
		return err
	}
	if !together && !bytes.Equal(all[srcAt:srcAt+len(src)], src) {
		return fmt.Errorf("src has changed")
	}
	return compare(all[dstAt:dstAt+len(want)], want)
}

func (r *rank) performOnHost(ctx context.Context, e example) error {
	c, t := e.call, e.call.Type
	src, want := encodeAll(t, e.src), encodeAll(t, e.want)
	dst := bytes.Repeat([]byte{0x5A}, len(want))
	c.SrcN, c.DstN = len(e.src), len(e.want)
	c.SrcAt, c.DstAt = uintptr(unsafe.Pointer(unsafe.SliceData(src))), uintptr(unsafe.Pointer(unsafe.SliceData(dst)))
	defer runtime.KeepAlive(src)
	if err := r.Run(ctx, []*op.Call{&c}); err != nil {
		return err
	}
	return compare(dst, want)
}

func compare(got, want []byte) error {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("byte %d of %d is %#x, should be %#x", i, len(want), got[i], want[i])
		}
	}
	return nil
}

// TestCalls makes every call with every type, operator and placement, and compares every byte.
func TestCalls(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		for _, n := range []int{1, 2, 3, 4} {
			t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
				ranks := world(t, v, n)
				each(t, n, func(i int) error { return ranks[i].performAll(t.Context(), testing.Short()) })
			})
		}
	})
}

// performAll makes all calls, in an order that is the same on all ranks.
func (r *rank) performAll(ctx context.Context, short bool) error {
	lengths := []int{1, 5, 1000}
	if short {
		lengths = []int{5}
	}
	for _, k := range lengths {
		for _, kind := range kinds {
			for typ := op.Int8; typ <= op.Float8E5M2; typ++ {
				for o := op.Sum; o <= op.Avg; o++ {
					if o != op.Sum && !kind.Reduces() || r.Supports(kind, typ, o, false) != nil {
						continue
					}
					for p := onDevice; p <= onHost; p++ {
						e := exampleOf(kind, typ, o, r.group.Rank, r.group.Size, k)
						if err := r.perform(ctx, e, p); err != nil {
							return fmt.Errorf("kind %d, %s, operator %d, %d elements, %v: %w", kind, typ, o, k, p, err)
						}
					}
				}
			}
		}
	}
	return nil
}

// TestGroup makes calls of several kinds as one, and messages that cross.
func TestGroup(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		const n, k = 3, 100
		ranks := world(t, v, n)
		each(t, n, func(i int) error {
			r := ranks[i]
			m, err := gpu.Alloc[float32](r.device, 8*k)
			require.NoError(t, err)
			defer m.Free()
			x := make([]float32, 8*k)
			for j := range x {
				x[j] = float32(i + 1)
			}
			require.NoError(t, m.Put(x))
			at, _ := m.Ptr()
			part := func(j int) uintptr { return at + uintptr(4*k*j) }
			call := func(kind op.Kind, dst, src uintptr, root int) *op.Call {
				return &op.Call{Head: op.Head{Record: op.Record{Kind: kind, Type: op.Float32, Root: int32(root), Count: uint64(k)}, DstAt: dst, SrcAt: src}}
			}
			next, prev := (i+1)%n, (i+n-1)%n
			for range 20 {
				err = r.Issue(r.handle(), []*op.Call{
					call(op.Send, 0, part(0), next),
					call(op.AllReduce, part(1), part(0), -1),
					call(op.Recv, part(2), 0, prev),
					call(op.Broadcast, part(3), part(3), 1),
					call(op.Gather, part(4), part(0), 0),
				})
				if err != nil {
					return err
				}
			}
			require.NoError(t, r.wait(within(t)))
			require.NoError(t, m.Get(x))
			for j := range k {
				if x[k+j] != 6 || x[2*k+j] != float32(prev+1) || x[3*k+j] != 2 {
					return fmt.Errorf("at %d: %v %v %v", j, x[k+j], x[2*k+j], x[3*k+j])
				}
				for p := range n {
					if i == 0 && x[(4+p)*k+j] != float32(p+1) {
						return fmt.Errorf("gathered at %d: %v", j, x[(4+p)*k+j])
					}
				}
			}
			return nil
		})
	})
}

// TestCapture replays calls from a graph: in capture nothing runs, and there is no Mark.
func TestCapture(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		const n, replays = 2, 5
		ranks := world(t, v, n)
		each(t, n, func(i int) error {
			r := ranks[i]
			m, err := gpu.Alloc[int32](r.device, 3)
			require.NoError(t, err)
			defer m.Free()
			require.NoError(t, m.Put([]int32{1, int32(10 * i), int32(10*i + 1)}))
			at, _ := m.Ptr()
			// The second swaps what the ranks have for each other, of a copy, since it is in place.
			calls := []*op.Call{
				{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Root: -1, Count: 1}, DstAt: at, SrcAt: at}},
				{Head: op.Head{Record: op.Record{Kind: op.AllToAll, Type: op.Int32, Root: -1, Count: 1}, DstAt: at + 4, SrcAt: at + 4}},
			}
			issue := func() error {
				return errors.Join(r.Issue(r.handle(), calls[:1]), r.Issue(r.handle(), calls[1:]))
			}
			require.NoError(t, issue()) // connections are not made in a capture
			require.NoError(t, r.stream.BeginCapture())
			require.NoError(t, issue())
			_, err = r.Mark(r.handle())
			require.ErrorIs(t, err, engine.ErrCapturing, "Mark while capturing")
			g, err := r.stream.EndCapture()
			require.NoError(t, err)
			for range replays {
				require.NoError(t, g.Launch(r.stream))
			}
			require.NoError(t, r.wait(within(t)))
			got := make([]int32, 3)
			require.NoError(t, m.Get(got))
			// Six swaps are none.
			if want := []int32{1 << (replays + 1), int32(10 * i), int32(10*i + 1)}; !slices.Equal(got, want) {
				return fmt.Errorf("%v, should be %v", got, want)
			}
			return g.Close()
		})
	})
}

// TestAllocations: a call allocates nothing.
func TestAllocations(t *testing.T) {
	t.Setenv("FAKE_NCCL_IDLE", "1")
	vendors(t, func(t *testing.T, v *vendor) {
		r := world(t, v, 1)[0]
		calls := make([]*op.Call, 8)
		for i := range calls {
			calls[i] = &op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Float32, Root: -1, Count: 1}, DstAt: 4096, SrcAt: 4096}}
		}
		h := r.handle()
		require.NoError(t, r.Issue(h, calls)) // makes room
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = r.Issue(h, calls[:1]) }), "one call")
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = r.Issue(h, calls) }), "a group")
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = r.wait(context.Background()) }), "a mark")
	})
}
