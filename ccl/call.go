package ccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/reduce"
)

// args are the arguments of one call, whatever its kind.
type args struct {
	kind         Kind
	typ          Type
	op           Op
	root, to     int // root or peer, or noRoot less a number; SendRecv's destination
	dst, src     []byte
	onDst, onSrc extent // where they lie; on a device they are these alone
	dc, sc       []int
}

// noRoot is the root of a call that has neither root nor peer. A number of Queue.Numbered is subtracted from it, so that it
// is compared, kept and sent as a root is.
const noRoot = -1

// checked are the arguments of a call without counts as far as check looks at them, and what it made of them.
type checked struct {
	count          uint64
	noDst, noSrc   bool // dst, src have no meaning on this rank
	dst, src       uintptr
	dstLen, srcLen int
	root, to       int
	kind           Kind
	typ            Type
	op             Op
	counts         counts
}

func (a *args) shape() checked {
	return checked{0, false, false, uintptr(unsafe.Pointer(unsafe.SliceData(a.dst))), uintptr(unsafe.Pointer(unsafe.SliceData(a.src))),
		len(a.dst), len(a.src), a.root, a.to, a.kind, a.typ, a.op, counts{}}
}

// again reports whether a is as the call that k has, but for counts.
func (a *args) again(k *checked) bool {
	return k.kind == a.kind && k.typ == a.typ && k.op == a.op && k.root == a.root && k.to == a.to &&
		k.dstLen == len(a.dst) && k.srcLen == len(a.src) &&
		k.dst == uintptr(unsafe.Pointer(unsafe.SliceData(a.dst))) && k.src == uintptr(unsafe.Pointer(unsafe.SliceData(a.src)))
}

// counts are those of the call that was checked last.
type counts struct{ dc, sc []int }

func (k *counts) are(a *args) bool {
	return len(k.dc)+len(a.dc) == 0 || slices.Equal(k.dc, a.dc) && slices.Equal(k.sc, a.sc)
}

func (k *counts) set(a *args) { k.dc, k.sc = append(k.dc[:0], a.dc...), append(k.sc[:0], a.sc...) }

// block makes a call on the calling goroutine.
func (c *Comm) block(ctx context.Context, a *args) error {
	if ctx == nil {
		return noContext(ctx, c, a.kind.String())
	}
	if c.none() {
		return refuseNone(a.kind.String())
	}
	c.calling.count++
	if c.life.shut() {
		return c.refuse(a, ErrClosed, whyShut())
	}
	k := &c.calling.call
	count := c.calling.checked.count
	if a.again(&c.calling.checked) && c.calling.checked.counts.are(a) {
		if c.calling.checked.noDst {
			a.dst = nil
		}
		if c.calling.checked.noSrc {
			a.src = nil
		}
	} else {
		given := a.shape()
		var err error
		if count, err = a.check(c); err != nil {
			return c.refuse(a, codeOf(err), err)
		}
		given.counts = c.calling.checked.counts // whose memory is used again
		c.calling.checked = given
		c.calling.checked.count, c.calling.checked.noDst, c.calling.checked.noSrc = count, a.dst == nil, a.src == nil
		c.calling.checked.counts.set(a)
	}
	if c.backlog.pending.Load() || c.devices.streams != nil {
		if err := c.drain(ctx); err != nil {
			return endedBy(ctx, c, err, a)
		}
	}
	if c.life.usedElsewhere() && c.eng.InCall() {
		return c.refuse(a, ErrArgument, inUse(c))
	}
	a.fill(k, c.rec.seq+1, count, &c.calling.factors)
	r := c.rec.begin(k, c.eng.Now())
	f := c.run(ctx, k)
	k.Dst, k.Src, k.DC, k.SC = nil, nil, nil, nil
	if f != nil {
		c.rec.end(r, Failed, c.eng.Now())
		return errorHere(ctx, c, f, r)
	}
	c.rec.end(r, Complete, c.eng.Now())
	return nil
}

// run makes one call, which Close waits for.
func (c *Comm) run(ctx context.Context, k *call.Call) *call.Fault {
	c.life.busy.Set()
	defer c.life.busy.Clear()
	if c.life.closed.Load() {
		return closedHere
	}
	if err := ctx.Err(); err != nil {
		return c.eng.Ended(call.ContextFault(err))
	}
	if c.watchers.any() {
		c.calling.one[0] = k
		return c.observe(ctx, c.calling.one[:])
	}
	if c.throughLib {
		c.calling.one[0] = k
		return c.foreign(ctx, c.calling.one[:])
	}
	return c.eng.Run(ctx, k)
}

// carryOut makes queued calls, as a group if there are several: through the library where the Comm has one
// for host memory, else on the CPU engine.
func (c *Comm) carryOut(ctx context.Context, calls []*call.Call) *call.Fault {
	if c.watchers.any() {
		return c.observe(ctx, calls)
	}
	return c.perform(ctx, calls)
}

// perform makes calls that nobody watches.
func (c *Comm) perform(ctx context.Context, calls []*call.Call) *call.Fault {
	switch {
	case c.throughLib:
		return c.foreign(ctx, calls)
	case len(calls) == 1:
		return c.eng.Run(ctx, calls[0])
	}
	return c.eng.RunGroup(ctx, calls)
}

// drain waits until all that was issued before has ended, however, or c is closed. Its error is ctx's.
func (c *Comm) drain(ctx context.Context) error {
	if c.devices.streams != nil {
		if err := c.devices.drain(ctx, &c.life); err != nil {
			return err
		}
	}
	return c.backlog.drained(ctx)
}

// endedBy fails c, since a call's context ended while queued calls were waited for.
func endedBy(ctx context.Context, c *Comm, err error, a *args) error {
	f := closedHere
	if c.life.enter() {
		f = c.eng.Ended(call.ContextFault(err))
		c.life.leave()
	}
	r := call.Record{Seq: c.rec.seq + 1, Kind: call.Kind(a.kind), Type: uint8(a.typ), Op: uint8(a.op), Root: int32(a.root)}
	return errorHere(ctx, c, f, &r)
}

var errForked = errors.New("this process is a forked child of a rank; only the parent may use the Comm: start a program here (exec) instead")

// whyShut is the cause of an ErrClosed, where it is not Close.
func whyShut() error {
	if proc.Forked() {
		return errForked
	}
	return nil
}

// refuse is the error of a call that had no effect.
func (c *Comm) refuse(a *args, code Code, err error) *Error {
	return c.named(&Error{Code: code, Op: a.kind.String(), Rank: c.Rank(), Peer: -1, Err: err})
}

// unsupported marks an argument error that is about the backend.
type unsupported struct{ error }

func codeOf(err error) Code {
	var u unsupported
	if errors.As(err, &u) {
		return ErrUnsupported
	}
	return ErrArgument
}

// supports is why the CPU engine cannot do k, or nil.
func supports(k Kind, t Type, op Op) error {
	switch {
	case k == 0 || k >= kindEnd:
		return fmt.Errorf("there is no kind %d", k)
	case k == KindBarrier || k == KindSplit || k == KindGroup || k == KindWindow || k == KindGraph:
		return nil
	case t == TypeNone || t >= typeEnd:
		return fmt.Errorf("there is no type %d", t)
	case !k.reduces():
		return nil
	case op >= opEnd:
		return fmt.Errorf("there is no operator %d", op)
	case reduce.For(t.kernel(), reduce.Op(op)) == nil:
		return unsupported{fmt.Errorf("the cpu engine moves %s, but does not reduce it", t)}
	}
	return nil
}

// alike reports whether what follows from kind, type, operator, root and count is in k.
func alike(k *call.Call, a *args, count uint64) bool {
	return k.Count == count && Kind(k.Kind) == a.kind && Type(k.Type) == a.typ && Op(k.Op) == a.op && k.Root == int32(a.root) &&
		(a.dc == nil && !k.Counted || a.kind == KindAllToAllV) // whose hash is not of its counts
}

// fill writes a, which has been checked, into k. Most calls are like the one before
// them: what follows from kind, type, operator, root and count is kept then. scaled are the Comm's.
func (a *args) fill(k *call.Call, seq, count uint64, scaled *factors) {
	if alike(k, a, count) {
		k.Seq, k.Hash, k.Dst, k.Src, k.To, k.DC, k.SC = seq, k.Own, a.dst, a.src, a.to, a.dc, a.sc
		return
	}
	*k = call.Call{
		Record: call.Record{Seq: seq, Count: count, Kind: call.Kind(a.kind), Type: uint8(a.typ), Op: uint8(a.op), Root: int32(a.root)},
		Dst:    a.dst, Src: a.src, DC: a.dc, SC: a.sc, To: a.to, Elem: a.typ.Size(), Counted: a.dc != nil,
	}
	if a.kind.reduces() {
		t := a.typ.kernel()
		op := reduce.Op(a.op)
		if a.op >= firstScaled {
			op = reduce.Sum
			scaled.scale(k)
		}
		k.Fold, k.Stream, k.Both = reduce.For(t, op), reduce.ForStream(t, op), reduce.ForBoth(t, op)
		k.All = reduce.ForSumAll(t, op)
		switch {
		case reduce.Weighs(t) && (a.op == Avg || a.op >= firstScaled):
			weigh(k, t)
		case a.op == Avg:
			k.Scale = reduce.Scale(t)
		}
	}
	k.Seal()
}

// hostSupports is why c cannot do k on host memory, or nil.
func hostSupports(c *Comm, k Kind, t Type, op Op) error {
	own := op
	if op >= firstScaled && k.reduces() {
		if _, err := c.calling.factors.of(t, op); err != nil {
			return err
		}
		op = Sum // what else is wrong
	}
	if !c.throughLib {
		return supports(k, t, op)
	}
	if k == 0 || k >= kindEnd || t >= typeEnd || op >= opEnd {
		return supports(k, t, op) // says which there are
	}
	if err := c.lib.Supports(engine.Kind(k), engine.Type(t), engineOp(own), true); err != nil {
		return unsupported{err}
	}
	return nil
}

// check says what is wrong with a, a call of c on host memory, and else how many elements it is about: all of the vector,
// or those of one rank's block, or the sum of the counts.
func (a *args) check(c *Comm) (count uint64, err error) {
	if !call.Checked && a.kind == KindAllReduce {
		return uint64(len(a.src) / a.typ.Size()), nil
	}
	if err := hostSupports(c, a.kind, a.typ, a.op); err != nil {
		return 0, err
	}
	e := max(a.typ.Size(), 1)
	a.onDst, a.onSrc = extentOf(a.dst, e), extentOf(a.src, e)
	return a.checkShape(c.eng.Size(), c.eng.Rank())
}

// checkShape is check for what does not depend on where the memory lies, on rank me of n.
func (a *args) checkShape(n, me int) (count uint64, err error) {
	if a.kind == KindAllReduce && a.onDst == a.onSrc {
		return uint64(a.onSrc.count), nil // in place: the call that is made most, of which nothing can be wrong
	}
	if a.root >= n || a.root < 0 && (a.kind.rooted() || a.kind == KindSend || a.kind == KindRecv || a.kind == KindSendRecv) {
		what := "root"
		if !a.kind.rooted() {
			what = "peer"
		}
		return 0, fmt.Errorf("%s is %d; the ranks are 0 to %d", what, a.root, n-1)
	}
	e, dst, src := max(a.typ.Size(), 1), a.onDst.count, a.onSrc.count
	same := func(dst, src, want int) error {
		if dst != want {
			return fmt.Errorf("dst has %d elements, src %d: dst must have %d", dst, src, want)
		}
		return nil
	}
	switch a.kind {
	case KindAllReduce:
		if err := same(dst, src, src); err != nil {
			return 0, err
		}
		return uint64(src), overlap(a.onDst, a.onSrc)
	case KindReduce:
		if me != a.root {
			a.dst, a.onDst = nil, extent{}
			return uint64(src), nil
		}
		if err := same(dst, src, src); err != nil {
			return 0, err
		}
		return uint64(src), overlap(a.onDst, a.onSrc)
	case KindBroadcast:
		return uint64(dst), nil
	case KindReduceScatter:
		if src != n*dst {
			return 0, fmt.Errorf("src has %d elements, dst %d: src must have %d, %d for each of %d ranks", src, dst, n*dst, dst, n)
		}
		return uint64(dst), within(a.onSrc, a.onDst, me*dst*e)
	case KindAllGather:
		if err := same(dst, src, n*src); err != nil {
			return 0, err
		}
		return uint64(src), within(a.onDst, a.onSrc, me*src*e)
	case KindGather:
		if me != a.root {
			a.dst, a.onDst = nil, extent{}
			return uint64(src), nil
		}
		if err := same(dst, src, n*src); err != nil {
			return 0, err
		}
		return uint64(src), within(a.onDst, a.onSrc, me*src*e)
	case KindScatter:
		if me != a.root {
			a.src, a.onSrc = nil, extent{}
			return uint64(dst), nil
		}
		if src != n*dst {
			return 0, fmt.Errorf("src has %d elements, dst %d: src must have %d, %d for each of %d ranks", src, dst, n*dst, dst, n)
		}
		return uint64(dst), within(a.onSrc, a.onDst, me*dst*e)
	case KindAllToAll:
		if err := same(dst, src, src); err != nil {
			return 0, err
		}
		if src%n != 0 {
			return 0, fmt.Errorf("%d elements do not divide among %d ranks", src, n)
		}
		return uint64(src / n), overlap(a.onDst, a.onSrc)
	case KindReduceScatterV, KindAllGatherV, KindGatherV, KindScatterV:
		return a.checkCounts(n, me)
	case KindAllToAllV:
		total, _, err := sum("dc", a.dc, n, 0)
		if err == nil && total != dst {
			err = fmt.Errorf("dst has %d elements, but dc adds up to %d", dst, total)
		}
		if err != nil {
			return 0, err
		}
		total, _, err = sum("sc", a.sc, n, 0)
		if err == nil && total != src {
			err = fmt.Errorf("src has %d elements, but sc adds up to %d", src, total)
		}
		if err == nil && a.dc[me] != a.sc[me] {
			err = fmt.Errorf("dc[%d] is %d and sc[%d] is %d, but they must be equal: both are what this rank keeps", me, a.dc[me], me, a.sc[me])
		}
		if err != nil {
			return 0, err
		}
		return 0, overlap(a.onDst, a.onSrc)
	case KindSendRecv:
		if a.to < 0 || a.to >= n {
			return 0, fmt.Errorf("peer is %d; the ranks are 0 to %d", a.to, n-1)
		}
		return uint64(dst), overlap(a.onDst, a.onSrc)
	}
	return uint64(max(dst, src)), nil // Send, Recv, Barrier
}

// checkCounts checks the kinds with one vector of counts.
func (a *args) checkCounts(n, me int) (uint64, error) {
	total, before, err := sum("counts", a.dc, n, me)
	if err != nil {
		return 0, err
	}
	whole, part := &a.onSrc, &a.onDst // ReduceScatterV, ScatterV
	wholeName, partName := "src", "dst"
	if a.kind == KindAllGatherV || a.kind == KindGatherV {
		whole, part = part, whole
		wholeName, partName = partName, wholeName
	}
	if part.count != a.dc[me] {
		return 0, fmt.Errorf("%s has %d elements, but counts[%d] is %d", partName, part.count, me, a.dc[me])
	}
	if a.kind.rooted() && me != a.root {
		*whole = extent{}
		if whole == &a.onDst {
			a.dst = nil
		} else {
			a.src = nil
		}
		return uint64(total), nil
	}
	if whole.count != total {
		return 0, fmt.Errorf("%s has %d elements, but counts add up to %d", wholeName, whole.count, total)
	}
	return uint64(total), within(*whole, *part, before*max(a.typ.Size(), 1))
}

// sum adds up counts, all n of them, and those before rank me.
func sum(name string, counts []int, n, me int) (total, before int, err error) {
	if len(counts) != n {
		return 0, 0, fmt.Errorf("%s has %d entries for %d ranks", name, len(counts), n)
	}
	for r, x := range counts {
		if x < 0 {
			return 0, 0, fmt.Errorf("%s[%d] is %d", name, r, x)
		}
		if r == me {
			before = total
		}
		if total += x; total < 0 {
			return 0, 0, fmt.Errorf("%s add up to more than an int holds", name)
		}
	}
	return total, before, nil
}

var errOverlap = errors.New("dst and src overlap partially")

// extentOf is where b lies, elements of that many bytes.
func extentOf(b []byte, elem int) extent {
	return extent{uintptr(unsafe.Pointer(unsafe.SliceData(b))), len(b), len(b) / elem}
}

func overlaps(a, b extent) bool {
	return a.n > 0 && b.n > 0 && a.at < b.at+uintptr(b.n) && b.at < a.at+uintptr(a.n)
}

// overlap refuses memory that overlaps without being the same.
func overlap(dst, src extent) error {
	if overlaps(dst, src) && dst.at != src.at {
		return errOverlap
	}
	return nil
}

// within refuses a part that overlaps whole elsewhere than at byte at.
func within(whole, part extent, at int) error {
	if overlaps(whole, part) && whole.at+uintptr(at) != part.at {
		return errOverlap
	}
	return nil
}
