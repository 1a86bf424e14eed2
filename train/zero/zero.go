// Package zero shards parameters, gradients and optimizer state over data-parallel ranks: ZeRO stages 1, 2 and 3
// (Rajbhandari et al. 2020), the last also known as FSDP. One training loop serves all stages; stage 0 is plain data
// parallelism, with the gradients of a unit all-reduced while those of the unit before it are computed.
//
//	for i := range layers {                    // forward
//		w, err := m.Params(ctx, i)             // stage 3: gathered; 1, 2: waits for the gather that Step began
//		x = forward(i, w, x)
//		m.Release(i)                           // stage 3: dropped
//	}
//	for i := len(layers) - 1; i >= 0; i-- {    // backward
//		w, err := m.Params(ctx, i)
//		g, err := m.Grads(ctx, i)              // add to it; stages 2, 3: one of two buffers
//		dx = backward(i, w, g, dx)
//		m.Release(i)
//		err = m.Reduce(i)                      // starts averaging into the shard
//	}
//	err = m.Step(ctx, update)
//
// Rank r owns part r of each unit, padded to equal parts. Every stage does the same arithmetic in
// the same order, so all stages give the bits of the unsharded optimizer, if reduce-scatter and
// all-reduce sum in one order: on one host always, else with ccl.Options.RankOrder. With several
// micro batches stages 0 and 1 add them up before the reduction, and stages 2 and 3 after it. Then
// 0 and 1 give the same bits, and so do 2 and 3, but the bits of the first two differ from those of
// the last two. They add up in the type of the masters, if that is wider.
//
// The calls go through a queue of the Comm. A call of the program on the same Comm waits for them,
// so metrics are better reduced on another Comm. There are no connections, and no Comm, of its own.
// An error of a Comm ends the model: Close it.
//
// In a step each of n ranks sends 2(n-1)/n of the model's bytes at stages 0 to 2, and 3(n-1)/n at
// stage 3, which gathers twice; at stages 2 and 3 each further micro batch adds (n-1)/n for its
// gradients, and at stage 3 twice that to gather. The norm gathers 16n bytes. [NeedOf] says what a
// rank holds.
//
// A rank that calls out of order, as by a Release too many, aborts the Comm with what it did, so that no rank waits.
package zero

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/internal/host"
	"github.com/goccl/goccl/train/internal/paged"
	"github.com/goccl/goccl/train/internal/same"
	"github.com/goccl/goccl/train/offload"
)

// Float is what can be trained. Gradients in float16 take a loss that is scaled: package amp.
type Float interface {
	~float32 | ~float64 | ccl.BFloat16 | ccl.Float16
}

// Options must agree on all ranks, but for Memory, NormOf, Poison and the file of Disk; New compares them.
type Options struct {
	// Stage is 0 to 3: what is sharded. 1: optimizer state, 2: gradients as well, 3: parameters as well.
	Stage int
	// Ahead is how many units stage 3 gathers beyond the one in use, at most all others; default 1, as in FSDP.
	Ahead int
	// Micro is the number of micro batches: calls of Reduce for each unit before a Step; default 1.
	Micro int
	// Clip scales gradients down to this global norm, by optim.ClipFactor; 0 does not.
	Clip float64
	// Unchecked spares a Step without Clip the norm of the gradients: Norm is 0, and what is not finite is applied. Step
	// then need not read all gradients before it updates the first unit.
	Unchecked bool
	// Sum adds gradients up, over the ranks and the micro batches, in place of averaging: for losses
	// that are divided by the global batch already, and for ranks whose batches differ in size.
	Sum bool
	// Frozen says which units are never updated, such as the weights under a LoRA: they have no
	// gradients, no master copy, and nothing is reduced for them. Nil: none.
	Frozen func(unit int) bool
	// FrozenParam says which parameters are never updated, such as the norms in a layer whose matrices
	// are trained. A unit of which all parameters are frozen is a frozen unit. In others a frozen
	// parameter keeps its bits, and whatever is in the place of its gradient counts nowhere; memory
	// and reductions stay those of the unit. Nil: none.
	FrozenParam func(unit, param int) bool
	// NormOver has the ranks over whose gradients the norm goes, too: those with other tp and pp coordinates.
	NormOver *ccl.Comm
	// NormOf says which parameters this rank counts in the norm; nil: all. What several ranks of NormOver hold
	// whole, such as a norm's weights under tp, counts on one of them only. What is not finite is found in all.
	NormOf func(unit, param int) bool
	// Replicas makes hybrid sharding (HSDP): shards are also averaged over this Comm, whose ranks have the same shards.
	Replicas *ccl.Comm
	// ReduceMaster reduces gradients as M, not as P: more bytes, fewer roundings.
	ReduceMaster bool
	// Memory is where the model lives; nil: memory of the host, from ccl.MakeSlice, on which the ranks of a host work
	// in place. With a Memory of a device Params, Grads and Shard return nil slices: use ParamBufs, GradBufs,
	// ShardBuf and StepBufs.
	Memory Memory
	// Offload keeps the master copies of a Memory of a device in memory of the host (ZeRO-Offload, Ren
	// et al. 2021): the Update of Step runs there, on slices, beside the optimizer's state, and the
	// device has parameters and gradients alone. In each step gradients go to the host as M, and
	// parameters come back. Where the Memory is the host's it does nothing.
	Offload bool
	// Disk keeps on files of a local disk what would be in memory of the host (ZeRO-Infinity): the
	// optimizer's state and the masters, and at stage 3 parameters and gradients as well. It takes one
	// Model, with a nil Memory. Update then gets ranges of pieces, [offload.State] returns the state of
	// each, and Shard and ShardBuf have nothing of what is on the disk.
	Disk *offload.Disk
	// Poison fills with NaN what Release drops at stage 3, so that a use after Release shows. For tests; host memory.
	Poison bool
}

// Memory allocates, and does the little arithmetic of this package, in the order of its Stream. Its
// arguments are what Alloc has returned, or parts of it, whose address [ccl.Buf.Addr] tells
// kernels. Nothing of it need block but SumSquares. That of package device is for NVIDIA's GPUs.
type Memory interface {
	// Stream is what collectives are issued on. It is asked for each.
	Stream() ccl.Stream
	// Fence makes Stream wait for the kernels that the program has started so far, if they run on other streams.
	Fence() error
	// Alloc returns n zeros. A Memory that has no arithmetic in t, as in float16, returns an error.
	Alloc(t ccl.Type, n int) (ccl.Buf, error)
	Free(ccl.Buf) error
	Zero(dst ccl.Buf) error
	// Add computes dst += src, of one type.
	Add(dst, src ccl.Buf) error
	// Scale computes dst *= by, and Divide dst /= n.
	Scale(dst ccl.Buf, by float64) error
	Divide(dst ccl.Buf, n int) error
	// Convert computes dst = src, of any of the types of Float. src may be host memory, which is the caller's again
	// when Convert returns.
	Convert(dst, src ccl.Buf) error
	// SumSquares waits for what was issued before. A Memory that also has SumsOfSquares(sums
	// []float64, src ...ccl.Buf) error is asked once a step for all of them, at stage 0 once for the
	// part of each rank.
	SumSquares(src ccl.Buf) (float64, error)
}

// Piece is a part of one parameter: what shards are made of. State of an optimizer that is laid out as the shard is
// saved and resharded by it.
type Piece struct {
	Unit, Param int
	Lo, Hi      int // elements of the parameter
	At          int // where they begin in the unit's shard
}

// Update makes one optimizer step on w, given the averaged gradients g. It must be elementwise, as
// those of package optim are; package optim/whole has some for whole tensors, and an optimizer for
// StepWith.
type Update[M Float] func(p Piece, w, g []M) error

// Model is the parameters of a model in units, usually a layer each, in forward order: what is communicated as one.
// P is the type of parameters and gradients as the layers see them, M that of the master copy that is updated; if they
// are the same there is no copy. It is used by one goroutine at a time.
type Model[P, M Float] struct {
	c      *ccl.Comm
	o      Options
	mem    Memory // in the order of its Stream
	near   Memory // for what no call on the Stream uses: on the host it computes at once
	host   *host.Memory
	reduce ccl.Type // what gradients are reduced as
	op     ccl.Op   // and how
	units  []unit[P]
	part   int // this rank's; 0 where it owns all
	owned  int // parts that it owns

	off  *host.Masters[M] // nil: masters are in mem
	disk *paged.Model     // nil: all is in memory

	slabs  []slab // stage 3: parameters
	gslabs []slab // stages 2 and 3: gradients
	turn   int    // how often one of them was reduced
	tmp    ccl.Buf
	wide   ccl.Buf // a unit as M
	// Where gradients are averaged as P and add up as M: a part as M.
	wideTmp ccl.Buf
	grad    ccl.Buf // as M, for Update
	all     []ccl.Buf
	bytes   Bytes

	accumulates bool // gradients of micro batches add up as M, which is wider than P
	micro       int  // micro batches of this step

	order, before []int // of Params in this step, and in the last one
	at            int   // place in before
	misuse        error // to be told
	norm          float64
	norms         norms
	stats, last   Stats
	comm          atomic.Int64 // nanoseconds
	began         time.Time    // of the collective under way; the stream's own
	started       func() error
	stopped       func() error
	closed        bool
}

// unit is what is gathered and reduced in one go.
type unit[P Float] struct {
	lens   []int
	frozen bool // it has no gshard, sum or grads, and shard is its master; still has its parameters that are
	still  []bool
	k      int     // elements of a part
	shard  ccl.Buf // this rank's parameters, as P
	master ccl.Buf // and as M, which may be the same memory
	gshard ccl.Buf // its averaged gradients
	sum    ccl.Buf // stages 0 and 1: all gradients of the micro batches so far, as M; none unless the Model accumulates
	whole  ccl.Buf // all parameters; none if they are not here
	grads  ccl.Buf // all gradients of this micro batch; likewise
	pieces []Piece
	seen   [][]watched // those whose gradients must be finite, by part

	views, gviews     [][][]P     // of whole and grads, by slab
	bufs, gbufs       [][]ccl.Buf // likewise
	slot, gslot       int         // the slab; -1: none
	gathered, reduced ccl.Work
	micro, uses       int
}

// watched is a piece that is updated, and whether the norm has it.
type watched struct {
	Piece
	counts bool
}

// norms are what the norm is made of: sums and parts of the ranks, and what counts here with the sums of its squares.
type norms struct {
	sums, parts []float64
	counted     []ccl.Buf
	squared     []float64
}

// slab is memory that units take turns in.
type slab struct {
	buf  ccl.Buf
	unit int      // -1: free
	busy ccl.Work // until then it is read
	turn int      // of gradients: when Reduce last issued it, by Model.turn
}

// align is what parts are padded to, in bytes of a parameter: a cache line. Compilers of GPU
// programs read in place what begins so.
const align = 64

// New makes a model of zeros; units[i][j] is the length of parameter j of unit i. It is collective.
func New[P, M Float](ctx context.Context, c *ccl.Comm, units [][]int, o *Options) (*Model[P, M], error) {
	if c == nil {
		return nil, errors.New("zero: the Comm is nil")
	}
	m := &Model[P, M]{c: c, owned: 1, part: c.Rank()}
	if o != nil {
		m.o = *o
	}
	m.o.Ahead, m.o.Micro = cmp.Or(m.o.Ahead, 1), cmp.Or(m.o.Micro, 1)
	if err := m.agree(ctx, units); err != nil {
		return nil, errors.Join(err, m.disk.Leave())
	}
	m.micro, m.o.Ahead = m.o.Micro, min(m.o.Ahead, max(len(units)-1, 1)) // with which all units have memory
	m.accumulates = m.o.Micro > 1 && ccl.TypeOf[M]().Size() > ccl.TypeOf[P]().Size()
	if m.mem, m.near = m.o.Memory, m.o.Memory; m.mem == nil {
		m.host = host.New(ctx, c)
		m.mem, m.near = m.host, host.Now{Memory: m.host}
	}
	if m.o.Offload && m.host == nil {
		m.off = &host.Masters[M]{From: m.mem.(ckpt.Copier)}
	}
	m.started = func() error { m.began = time.Now(); return nil }
	m.stopped = func() error { m.comm.Add(int64(time.Since(m.began))); return nil }
	if m.reduce = ccl.TypeOf[P](); m.o.ReduceMaster {
		m.reduce = ccl.TypeOf[M]()
	}
	if m.op = ccl.Avg; m.o.Sum {
		m.op = ccl.Sum
	}
	if m.o.Stage == 0 {
		m.part, m.owned = 0, c.Size()
	}
	m.norms = norms{sums: make([]float64, 2), parts: make([]float64, 2*c.Size())}
	if err := same.Args(ctx, c, "zero", m.allocate(units)); err != nil {
		m.tell(err)
		return nil, errors.Join(err, m.Close(), m.disk.Leave())
	}
	return m, nil
}

// agree checks the arguments, and compares them with those of the other ranks.
func (m *Model[P, M]) agree(ctx context.Context, units [][]int) error {
	o := &m.o
	// First of all whether there are other Comms: what follows is collective over these, too.
	also := []string{fmt.Sprintf("NormOver %v", o.NormOver != nil), fmt.Sprintf("Replicas %v", o.Replicas != nil)}
	if err := same.Args(ctx, m.c, "zero", nil, also...); err != nil {
		m.tell(err)
		return err
	}
	var bad error
	switch {
	case o.Stage < 0 || o.Stage > 3:
		bad = fmt.Errorf("stage %d; the stages are 0 to 3", o.Stage)
	case o.Micro < 1 || o.Ahead < 1:
		bad = fmt.Errorf("%d micro batches, %d units ahead; both must be at least 1", o.Micro, o.Ahead)
	case o.Clip < 0 || math.IsNaN(o.Clip) || math.IsInf(o.Clip, 0):
		bad = fmt.Errorf("gradients cannot be clipped to a norm of %v", o.Clip)
	case ccl.TypeOf[M]().Size() < ccl.TypeOf[P]().Size():
		bad = fmt.Errorf("master copies of %v are narrower than parameters of %v", ccl.TypeOf[M](), ccl.TypeOf[P]())
	case o.Disk != nil && o.Memory != nil:
		bad = errors.New("a Disk is beside memory of the host, and Memory is another one")
	case o.Disk != nil:
		if bad = o.Disk.Take(func(err error) { m.c.Abort(err); m.tell(err) }); bad == nil {
			m.disk = &paged.Model{D: o.Disk, All: o.Stage == 3, By: 1, Params: ccl.TypeOf[P](), Masters: ccl.TypeOf[M]()}
		}
	case o.Offload && o.Memory != nil:
		if _, ok := o.Memory.(ckpt.Copier); !ok {
			bad = fmt.Errorf("masters cannot be offloaded from memory that a %T cannot copy to the host", o.Memory)
		}
	}
	step := []string{fmt.Sprintf("Micro %d", o.Micro), fmt.Sprintf("Clip %v", o.Clip),
		fmt.Sprintf("Unchecked %v", o.Unchecked), fmt.Sprintf("Sum %v", o.Sum)}
	items := []string{fmt.Sprintf("stage %d", o.Stage), step[0], fmt.Sprintf("Ahead %d", o.Ahead),
		step[1], step[2], step[3], fmt.Sprintf("ReduceMaster %v", o.ReduceMaster), fmt.Sprintf("Offload %v", o.Offload),
		fmt.Sprintf("Disk %v", o.Disk != nil),
		fmt.Sprintf("parameters of %v", ccl.TypeOf[P]()), fmt.Sprintf("masters of %v", ccl.TypeOf[M]())}
	for i, lens := range units {
		item := fmt.Sprintf("unit %d with parameters of %d", i, lens)
		if still, frozen := o.still(i, len(lens)); frozen {
			item += ", frozen"
		} else if slices.Contains(still, true) {
			item += fmt.Sprintf(", frozen: %v", still)
		}
		items = append(items, item)
		for j, n := range lens {
			if n < 0 || n > math.MaxInt32*64 {
				bad = fmt.Errorf("parameter %d of unit %d has %d elements", j, i, n)
			}
		}
	}
	err := same.Args(ctx, m.c, "zero", bad, items...)
	if failed := m.c.Err(); failed != nil { // which is not about arguments
		err = fmt.Errorf("zero: %w", failed)
		m.tell(err)
		return err
	}
	if o.Replicas == nil && o.NormOver == nil {
		return err
	}
	var unaware []*ccl.Comm // whose ranks have heard of nothing wrong
	over := func(c *ccl.Comm, what string, items ...string) {
		if c == nil {
			return
		}
		e := same.Args(ctx, c, what, err, items...)
		if e == nil {
			unaware = append(unaware, c)
		}
		err = cmp.Or(err, e)
	}
	over(o.Replicas, "zero: Replicas", append(items, fmt.Sprintf("shard %d of %d", m.c.Rank(), m.c.Size()))...)
	over(o.NormOver, "zero: NormOver", step...) // whose ranks have other units
	if err != nil {
		err = unprefixed{err, "zero: "}
	}
	// These Comms may be wrong for some ranks of m.c alone. Then no rank of it has a model.
	if err = same.Args(ctx, m.c, "zero", err); err != nil {
		for _, c := range unaware {
			c.Abort(err)
		}
	}
	return err
}

// still says which of n parameters of a unit are never updated, and whether that is all of the unit.
func (o *Options) still(unit, n int) (params []bool, all bool) {
	all = o.Frozen != nil && o.Frozen(unit)
	params = make([]bool, n)
	for j := range params {
		params[j] = all || o.FrozenParam != nil && o.FrozenParam(unit, j)
	}
	return params, all || n > 0 && !slices.Contains(params, false)
}

// tell fails the other Comms with err: their ranks wait for this one.
func (m *Model[P, M]) tell(err error) {
	for _, c := range []*ccl.Comm{m.o.NormOver, m.o.Replicas} {
		c.Abort(err)
	}
}

// Pieces are what this rank's shard of unit i is made of.
func (m *Model[P, M]) Pieces(i int) []Piece {
	if i < 0 || i >= len(m.units) {
		return nil
	}
	return m.units[i].pieces
}

// Shard is this rank's shard of unit i, of the master type, with padding at its end: to save, and
// to fill from a checkpoint. Optimizer state is laid out alike. After filling call Loaded. A frozen
// unit has no master copy: where P is not M, ShardBuf has its shard, as P.
func (m *Model[P, M]) Shard(i int) []M {
	s, _ := ccl.SliceOf[M](m.ShardBuf(i))
	return s
}

// ShardBuf is Shard in the Memory of Options.
func (m *Model[P, M]) ShardBuf(i int) ccl.Buf {
	if i < 0 || i >= len(m.units) || m.closed {
		return ccl.Buf{}
	}
	return m.units[i].master
}

// Frozen reports whether no parameter of unit i is ever updated: it has no gradients.
func (m *Model[P, M]) Frozen(i int) bool { return i >= 0 && i < len(m.units) && m.units[i].frozen }

// Norm is the global gradient norm of the last Step, before clipping; 0 if Options.Unchecked leaves it out.
func (m *Model[P, M]) Norm() float64 { return m.norm }

// Bytes is what this rank holds.
func (m *Model[P, M]) Bytes() Bytes { return m.bytes }

// Bytes of memory. Params, Grads and Master are what the paper's formula counts, without an
// optimizer's state. Host is what Offload has on the host, masters and the gradients of a unit, and
// Disk what is on the disk, with the optimizer's state.
type Bytes struct{ Params, Grads, Master, Buffers, Host, Disk int64 }

// Stats are of the last step.
func (m *Model[P, M]) Stats() Stats { return m.last }

// Stats are times and bytes. Comm is 0 on a device.
type Stats struct {
	Reduced, Gathered int64         // bytes handed to collectives
	Comm, Exposed     time.Duration // in collectives; of that, spent waiting for them
}

// NeedOf is [Need] for a model of those types and Options, whose optimizer keeps state bytes for
// each of n parameters besides the masters: 8 for AdamW. Gradients take the size of P, or of M
// where they add up over micro batches or are reduced in that; at stages 0 and 1 they are then
// there as P, too. Frozen parameters take what Need says of them, with no bytes of gradient or
// state. With Offload it is what the device holds, without masters and state, and with a
// Disk what memory holds.
func NeedOf[P, M Float](n int64, ranks int, o *Options, state float64) int64 {
	if o == nil {
		o = &Options{}
	}
	p, m := float64(ccl.TypeOf[P]().Size()), float64(ccl.TypeOf[M]().Size())
	grads, part := p, 0. // of which the part is sharded from stage 1 on
	if o.Disk != nil && o.Stage == 3 {
		return 0
	}
	if o.Offload || o.Disk != nil {
		state = 0
	} else if m > p {
		state += m
	}
	if m > p {
		switch {
		case o.Stage >= 2 && (o.Micro > 1 || o.ReduceMaster):
			grads = m
		case o.Stage < 2 && o.Micro > 1:
			grads = p + m
			if o.Stage == 1 && o.ReduceMaster {
				part = m
			}
		case o.ReduceMaster:
			part = m
		}
	}
	return Need(n, o.Stage, ranks, p, grads, state+part)
}

// Need is what one rank holds, in bytes, by the paper's formula: p bytes of parameter, g of gradient and s of optimizer
// state, master copies included, for each of n parameters; 2, 2 and 12 for bfloat16 with AdamW. Stage 0 is plain data
// parallelism.
func Need(n int64, stage, ranks int, p, g, s float64) int64 {
	part := func(from int, x float64) float64 {
		if stage >= from {
			return x / float64(max(ranks, 1))
		}
		return x
	}
	return int64(math.Ceil(float64(n) * (part(3, p) + part(2, g) + part(1, s))))
}
