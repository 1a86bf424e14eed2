package mpi

import (
	"context"
	"runtime"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// typed is a Call on slices.
func typed[T Number](kind Kind, dst, src []T) (k Call) {
	set(&k, kind, dst, src)
	return k
}

// set is typed where it matters that a Call is not copied.
func set[T Number](k *Call, kind Kind, dst, src []T) {
	k.Kind, k.Type = kind, TypeOf[T]()
	k.keep[0], k.keep[1] = unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src))
	k.Dst, k.Src = uintptr(k.keep[0]), uintptr(k.keep[1])
}

// sameStart reports whether dst and src begin at the same element: how in place is written.
func sameStart[T Number](dst, src []T) bool {
	return len(dst) > 0 && len(src) > 0 && unsafe.SliceData(dst) == unsafe.SliceData(src)
}

// isBlock reports whether part is whole[from:].
func isBlock[T Number](part, whole []T, from int) bool {
	return from < len(whole) && sameStart(part, whole[from:])
}

// lengths refuses a slice of another length than the call's.
func lengths(k Kind, name string, got, want int) error {
	if got != want {
		return refused(k, ErrCount, "%s has %d elements, but should have %d", name, got, want)
	}
	return nil
}

// run makes k, or refuses it.
func run(ctx context.Context, c *Comm, k *Call, err error) error {
	if err == nil {
		err = k.check(c.size)
	}
	if err == nil {
		_, err = c.do(ctx, k)
	}
	runtime.KeepAlive(k)
	return err
}

// Barrier returns when all ranks have called it.
func Barrier(ctx context.Context, c *Comm) error {
	return run(ctx, c, &Call{Kind: KindBarrier}, nil)
}

// Bcast copies root's buf to all ranks.
func Bcast[T Number](ctx context.Context, c *Comm, buf []T, root int) error {
	k := bcast(buf, root)
	return run(ctx, c, &k, nil)
}

func bcast[T Number](buf []T, root int) Call {
	k := typed(KindBcast, buf, nil)
	k.N, k.Root = len(buf), root
	return k
}

// Reduce reduces the src of all ranks into root's dst; elsewhere dst is not used. In place at the
// root: dst and src are one slice.
func Reduce[T Number](ctx context.Context, c *Comm, dst, src []T, op Op, root int) error {
	k, err := reduce(c, dst, src, op, root)
	return run(ctx, c, &k, err)
}

func reduce[T Number](c *Comm, dst, src []T, op Op, root int) (Call, error) {
	if c.rank != root {
		dst = nil
	}
	if root != 0 && sameStart(dst, src) { // MPICH 4.0.2 reads from the address MPI_IN_PLACE, unless the root is 0
		src = slices.Clone(src)
	}
	k := typed(KindReduce, dst, src)
	k.N, k.Op, k.Root, k.InPlace = len(src), op, root, sameStart(dst, src)
	if c.rank != root {
		return k, nil
	}
	return k, lengths(KindReduce, "dst", len(dst), len(src))
}

// AllReduce reduces the src of all ranks into everyone's dst. In place: dst and src are one slice.
func AllReduce[T Number](ctx context.Context, c *Comm, dst, src []T, op Op) error {
	var k Call
	err := vector(&k, KindAllReduce, dst, src, op)
	return run(ctx, c, &k, err)
}

// Scan reduces into dst of rank r the src of ranks 0 to r. In place: dst and src are one slice.
func Scan[T Number](ctx context.Context, c *Comm, dst, src []T, op Op) error {
	var k Call
	err := vector(&k, KindScan, dst, src, op)
	return run(ctx, c, &k, err)
}

// Exscan reduces into dst of rank r the src of ranks 0 to r-1: with Sum, where what rank r has begins. On rank 0 dst is
// undefined. In place: dst and src are one slice.
func Exscan[T Number](ctx context.Context, c *Comm, dst, src []T, op Op) error {
	var k Call
	err := vector(&k, KindExscan, dst, src, op)
	return run(ctx, c, &k, err)
}

func vector[T Number](k *Call, kind Kind, dst, src []T, op Op) error {
	set(k, kind, dst, src)
	k.N, k.Op, k.InPlace = len(src), op, sameStart(dst, src)
	return lengths(kind, "dst", len(dst), len(src))
}

// ReduceScatter reduces the src of all ranks; rank r gets block r of the result, len(dst) elements.
// In place: dst is the beginning of src, on all ranks; the rest of src is undefined then.
func ReduceScatter[T Number](ctx context.Context, c *Comm, dst, src []T, op Op) error {
	k, err := reduceScatter(c, dst, src, op)
	return run(ctx, c, &k, err)
}

func reduceScatter[T Number](c *Comm, dst, src []T, op Op) (Call, error) {
	k := typed(KindReduceScatter, dst, src)
	k.N, k.Op, k.InPlace = len(dst), op, sameStart(dst, src)
	return k, lengths(KindReduceScatter, "src", len(src), len(dst)*c.size)
}

// ReduceScatterV is ReduceScatter with blocks of counts[r] elements.
func ReduceScatterV[T Number](ctx context.Context, c *Comm, dst, src []T, counts []int, op Op) error {
	k := typed(KindReduceScatterV, dst, src)
	// All ranks must say the same, those with an empty block as well: that is in place by its address.
	k.N, k.DC, k.Op, k.InPlace = len(dst), counts, op, len(src) > 0 && unsafe.SliceData(dst) == unsafe.SliceData(src)
	return run(ctx, c, &k, blocks(c, &k, "dst", len(dst), "src", len(src)))
}

// blocks checks the lengths of this rank's block and of the whole against k.DC; "" names what this
// rank has not.
func blocks(c *Comm, k *Call, part string, n int, whole string, all int) error {
	if len(k.DC) != c.size {
		return nil // refused later
	}
	if part != "" {
		if err := lengths(k.Kind, part, n, k.DC[c.rank]); err != nil {
			return err
		}
	}
	if whole != "" {
		return lengths(k.Kind, whole, all, op.Elements(k.DC))
	}
	return nil
}

// Gather collects the src of all ranks in root's dst, block after block; elsewhere dst is not used.
// In place at the root: src is its block of dst.
func Gather[T Number](ctx context.Context, c *Comm, dst, src []T, root int) error {
	k, err := rooted(c, KindGather, dst, src, nil, root)
	return run(ctx, c, &k, err)
}

// GatherV is Gather with blocks of counts[r] elements.
func GatherV[T Number](ctx context.Context, c *Comm, dst []T, counts []int, src []T, root int) error {
	k, err := rooted(c, KindGatherV, dst, src, counts, root)
	return run(ctx, c, &k, err)
}

// Scatter gives block r of root's src to rank r; elsewhere src is not used. In place at the root:
// dst is its block of src.
func Scatter[T Number](ctx context.Context, c *Comm, dst, src []T, root int) error {
	k, err := rooted(c, KindScatter, dst, src, nil, root)
	return run(ctx, c, &k, err)
}

// ScatterV is Scatter with blocks of counts[r] elements.
func ScatterV[T Number](ctx context.Context, c *Comm, dst, src []T, counts []int, root int) error {
	k, err := rooted(c, KindScatterV, dst, src, counts, root)
	return run(ctx, c, &k, err)
}

// rooted describes a Gather or a Scatter: every rank has a part, and the root the whole, which is
// not used elsewhere. Blocks of GatherV and ScatterV have counts[r] elements.
func rooted[T Number](c *Comm, kind Kind, dst, src []T, counts []int, root int) (Call, error) {
	part, whole, names := &src, &dst, [2]string{"src", "dst"}
	if kind == KindScatter || kind == KindScatterV {
		part, whole, names = &dst, &src, [2]string{"dst", "src"}
	}
	if c.rank != root {
		*whole, names[1] = nil, ""
	}
	k := typed(kind, dst, src)
	k.N, k.DC, k.Root = len(*part), counts, root
	from := root * k.N // where the root's own block begins in the whole
	if kind == KindGatherV || kind == KindScatterV {
		if err := blocks(c, &k, names[0], k.N, names[1], len(*whole)); err != nil || len(counts) != c.size || c.rank != root {
			return k, err
		}
		from = op.Elements(counts[:root])
	} else if c.rank != root { // a root that is no rank is refused later
		return k, nil
	} else if err := lengths(kind, names[1], len(*whole), k.N*c.size); err != nil {
		return k, err
	}
	k.InPlace = isBlock(*part, *whole, from)
	return k, nil
}

// AllGather collects the src of all ranks in everyone's dst, block after block. In place, on all
// ranks: src is this rank's block of dst.
func AllGather[T Number](ctx context.Context, c *Comm, dst, src []T) error {
	k, err := allGather(c, dst, src)
	return run(ctx, c, &k, err)
}

func allGather[T Number](c *Comm, dst, src []T) (Call, error) {
	k := typed(KindAllGather, dst, src)
	k.N, k.InPlace = len(src), isBlock(src, dst, c.rank*len(src))
	return k, lengths(KindAllGather, "dst", len(dst), len(src)*c.size)
}

// AllGatherV is AllGather with blocks of counts[r] elements.
func AllGatherV[T Number](ctx context.Context, c *Comm, dst []T, counts []int, src []T) error {
	k, err := allGatherV(c, dst, counts, src)
	return run(ctx, c, &k, err)
}

func allGatherV[T Number](c *Comm, dst []T, counts []int, src []T) (Call, error) {
	k := typed(KindAllGatherV, dst, src)
	k.N, k.DC = len(src), counts
	err := blocks(c, &k, "src", len(src), "dst", len(dst))
	if err == nil && len(counts) == c.size {
		k.InPlace = isBlock(src, dst, op.Elements(counts[:c.rank]))
	}
	return k, err
}

// AllToAll gives block r of src to rank r and collects what the others give, block after block in
// dst. In place, on all ranks: dst and src are one slice.
func AllToAll[T Number](ctx context.Context, c *Comm, dst, src []T) error {
	k, err := allToAll(c, dst, src)
	return run(ctx, c, &k, err)
}

func allToAll[T Number](c *Comm, dst, src []T) (Call, error) {
	k := typed(KindAllToAll, dst, src)
	k.InPlace = sameStart(dst, src)
	if c.size < 1 {
		return k, nil
	}
	k.N = len(src) / c.size
	if err := lengths(KindAllToAll, "src", len(src), k.N*c.size); err != nil {
		return k, err
	}
	return k, lengths(KindAllToAll, "dst", len(dst), len(src))
}

// AllToAllV is AllToAll with blocks of sc[r] elements to rank r and dc[r] from it. In place dst and src are
// one slice: what is sent is copied first.
func AllToAllV[T Number](ctx context.Context, c *Comm, dst []T, dc []int, src []T, sc []int) error {
	// MPI's in place is of all ranks or none, and a rank without elements cannot tell which: it is of none.
	if sameStart(dst, src) {
		src = slices.Clone(src)
	} else if len(src) == 0 {
		src = nil
	}
	k := typed(KindAllToAllV, dst, src)
	k.DC, k.SC = dc, sc
	err := lengths(KindAllToAllV, "dst", len(dst), op.Elements(dc))
	if err == nil {
		err = lengths(KindAllToAllV, "src", len(src), op.Elements(sc))
	}
	return run(ctx, c, &k, err)
}

func refused(k Kind, c Class, format string, args ...any) *Error {
	return failed(k.String(), c, format, args...)
}
