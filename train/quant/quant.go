// Package quant sums vectors of float32 over slow links, in 8 or 4 bits an element with a scale for
// each block, as integers or as 8-bit floats, or in bfloat16.
//
//	r, err := quant.New(c, quant.Int8, len(x), nil)
//	err = r.Avg(ctx, x) // x is the mean of all ranks, the same bits on each
//
// Each rank owns a shard of the vector. It gets the shard from all ranks, encoded, adds them up in
// float32 in rank order, and sends the encoded result to all. So an element is rounded twice for
// any number of ranks, where a ring would round at each hop. All ranks decode the same bytes: they
// have the same bits, on machines of any kind. This is the exchange of torchft's quantized
// all-reduce; PCCL rounds at each hop.
//
//	codec     bits an element   error of a mean of 4 ranks, of its rms
//	bf16      16                .003
//	int8      8.125             .010
//	int4      4.5               .15
//	e4m3      8.125             .037
//	e5m2      8.125             .074
//
// In a call each of n ranks sends 2(n-1)/n of the encoded vector. A vector goes in pieces: while one is
// on the wire, the arithmetic of others is done, and messages in both phases of the exchange share
// the wire. The messages of a phase leave together, as a Group of Send and Recv, so a phase lasts
// as long as one trip, not n-1. A Reducer keeps what it needs, and allocates nothing in a call.
//
// A NaN or an infinity reaches all ranks as NaN in all elements of its block, and Finite and Avg tell
// of it on all ranks alike. Package outer sends the differences of replicas so, and Hook the
// gradients of package ddp.
package quant

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// ErrNotFinite is the cause of an error of Avg, on all ranks, where the mean has a NaN or an infinity.
var ErrNotFinite = errors.New("the mean is not finite")

// Options must be the same on all ranks, as the codec and the length must: the first call of a Reducer compares
// them. The zero value is the default.
type Options struct {
	// Piece is how many bytes of float32 are exchanged at once. 0 is a quarter of the vector, at least
	// 32 MiB. Each piece more hides arithmetic behind the wire, and costs a trip.
	Piece int
	// Feedback adds what rounding has lost to the vector of the next call (Seide et al. 2014, Karimireddy
	// et al. 2019): each rank adds the losses of its vector, and those of its shard of the sums. That takes
	// memory as large as the vector, and a shard more. A mean that is not finite clears the losses.
	Feedback bool
	// Sum adds up in place of averaging.
	Sum bool
	// Agreed says that the ranks have compared all that: the first call does not.
	Agreed bool
}

// Reducer averages vectors of one length over the ranks of a Comm. One goroutine at a time uses it,
// and one call at a time is under way.
type Reducer struct {
	k      Codec
	c      *ccl.Comm
	o      Options
	n      int
	by     float32 // what elements are multiplied by as they are added up
	pieces []piece
	mem    memory
	math   ccl.HostStream // of the arithmetic
	x      []float32
	end    ending
	bad    bool // the mean is not finite
	tags   tags
	steps  []step
	finish func() error // behind the last step
	alike  struct {
		facts  []int64 // of all ranks, nil once they are compared
		differ error   // what came of that
	}
}

// memory is what a Reducer computes in.
type memory struct {
	room [2]room
	tail []float32 // a shard that ends behind the vector
	sum  []float32
	lost []float32 // by the rounding of the vector; nil without Feedback
	kept []float32 // by the rounding of the sums
}

// ending is the end of a call. Where the Comm fails, arithmetic may still be at the vector: the
// call's Work is done when that has ended, too. So it is of a stream that does not fail.
type ending struct {
	stream ccl.HostStream
	moved  ccl.Work // the last on the Comm's Queue
	wait   func() error
}

// tags are the numbers of Tag.
type tags struct {
	of   []uint64 // by rank
	on   bool
	tell func(g ccl.Queue) error // exchanges them where no piece does
}

// piece is a part of the vector.
type piece struct {
	at, n int // its elements
	shard int // elements of a shard, whole blocks
	kept  int // where its sums begin in Reducer.mem.kept
	*room     // of the encoded elements; a piece that is done had the same room

	encode, reduce, decode func() error
	encoded, reduced       ccl.Work
}

// room is where a piece is encoded, as long as the largest is.
type room struct {
	out, in, all []byte // a shard of each rank
	mine         []byte // the sums of this rank's shard
}

// step is what happens behind one another: arithmetic begins, then messages move.
type step struct {
	before func() error
	move   func(g ccl.Queue) error // nil: nothing
}

func nothing() error { return nil }

const leastPiece = 32 << 20 // bytes

// New returns a Reducer of vectors of n elements over the ranks of c. It sends nothing.
func New(c *ccl.Comm, k Codec, n int, o *Options) (*Reducer, error) {
	if o == nil {
		o = &Options{}
	}
	switch {
	case c == nil:
		return nil, errors.New("quant: the Comm is nil")
	case k >= codecs:
		return nil, fmt.Errorf("quant: %v is no codec", k)
	case n < 0 || o.Piece < 0:
		return nil, fmt.Errorf("quant: %d elements in pieces of %d bytes: neither may be negative", n, o.Piece)
	}
	r := &Reducer{k: k, c: c, o: *o, n: n, by: 1}
	if c.Size() == 1 { // nothing is sent, and so nothing rounded
		k, r.k = None, None
	} else if !o.Agreed {
		r.alike.facts = make([]int64, len(factTexts)*c.Size())
	}
	if !o.Sum {
		r.by = 1 / float32(c.Size())
	}
	r.end.wait = func() error {
		err := r.end.moved.Wait(context.Background())
		return errors.Join(err, r.math.Do(nothing).Wait(context.Background()))
	}
	r.finish, r.tags.of = r.last, make([]uint64, c.Size())
	r.tags.tell = func(g ccl.Queue) error { r.exchangeTags(g); return nil }
	if k == None || n == 0 {
		return r, nil
	}
	r.cut(cmp.Or(o.Piece, max(leastPiece, n)) / 4) // n/4 elements have n bytes
	if o.Feedback {
		last := r.pieces[len(r.pieces)-1]
		r.mem.lost, r.mem.kept = make([]float32, n), make([]float32, last.kept+last.shard)
	}
	for j := range len(r.pieces) + 2 {
		r.steps = append(r.steps, r.stepOf(j))
	}
	return r, nil
}

// cut makes pieces of about so many elements, and their memory.
func (r *Reducer) cut(elements int) {
	ranks, align := r.c.Size(), r.k.align()
	up := func(n int) int { return (n + ranks*align - 1) / (ranks * align) * align }
	most := max(up(elements), align)
	for at, kept := 0, 0; at < r.n; {
		p := piece{at: at, n: min(r.n-at, most*ranks), kept: kept, room: &r.mem.room[len(r.pieces)%2]}
		p.shard = up(p.n)
		r.pieces = append(r.pieces, p)
		at, kept = at+p.n, kept+p.shard
	}
	largest := r.pieces[0].shard
	r.mem.tail, r.mem.sum = make([]float32, largest), make([]float32, largest)
	bytes := r.k.bytes(largest)
	for i := range min(len(r.pieces), 2) {
		all := func() []byte { return make([]byte, ranks*bytes) }
		r.mem.room[i] = room{all(), all(), all(), make([]byte, bytes)}
	}
	for j := range r.pieces {
		p := &r.pieces[j]
		p.encode = func() error { r.encode(p); return nil }
		p.reduce = func() error { r.reduce(p); return nil }
		p.decode = func() error { r.decode(p); return nil }
	}
}

// stepOf is step j. Piece j's shards move in it, and piece j-2's sums; meanwhile the shards of piece j-1 are
// added up, the sums of piece j-3 decoded, and piece j+1 is encoded. Those three run in this order,
// which their shared memory needs.
func (r *Reducer) stepOf(j int) (s step) {
	has := func(j int) bool { return j >= 0 && j < len(r.pieces) }
	s.before = func() error {
		if j == 0 {
			r.begin(&r.pieces[0])
		}
		var err error
		if has(j) {
			err = r.pieces[j].encoded.Wait(context.Background())
		}
		if has(j - 2) {
			err = errors.Join(err, r.pieces[j-2].reduced.Wait(context.Background()))
		}
		if has(j - 3) {
			r.math.Do(r.pieces[j-3].decode)
		}
		if has(j - 1) {
			r.pieces[j-1].reduced = r.math.Do(r.pieces[j-1].reduce)
		}
		if has(j + 1) {
			r.begin(&r.pieces[j+1])
		}
		return err
	}
	if has(j) || has(j-2) {
		s.move = func(g ccl.Queue) error {
			if j == 0 && r.tags.on {
				r.exchangeTags(g)
			}
			if has(j) {
				p := &r.pieces[j]
				r.exchange(g, p, func(i int) []byte { return r.of(p, p.out, i) }, p.in)
			}
			if has(j - 2) {
				p := &r.pieces[j-2]
				r.exchange(g, p, func(int) []byte { return p.mine[:r.k.bytes(p.shard)] }, p.all)
			}
			return nil
		}
	}
	return s
}

func (r *Reducer) begin(p *piece) { p.encoded = r.math.Do(p.encode) }

// of is the part of rank i in memory that has one of each.
func (r *Reducer) of(p *piece, b []byte, i int) []byte {
	n := r.k.bytes(p.shard)
	return b[i*n : (i+1)*n]
}

// exchange sends each other rank a part, and receives one from each. Ranks begin with their neighbor, so that none is
// sent to by all at once.
func (r *Reducer) exchange(g ccl.Queue, p *piece, out func(i int) []byte, in []byte) {
	n, me := r.c.Size(), r.c.Rank()
	for d := 1; d < n; d++ {
		to, from := (me+d)%n, (me-d+n)%n
		g.Send(ccl.BufOf(out(to)), to)
		g.Recv(ccl.BufOf(r.of(p, in, from)), from)
	}
}

func (r *Reducer) exchangeTags(g ccl.Queue) {
	me := r.c.Rank()
	for i := range r.tags.of {
		if i != me {
			g.Send(ccl.BufOf(r.tags.of[me:me+1]), i)
			g.Recv(ccl.BufOf(r.tags.of[i:i+1]), i)
		}
	}
}

// Tag has the calls that follow exchange a number of each rank with the vector, such as a hash of what the ranks
// should have alike, and returns the numbers, by rank: valid once a call is done. A rank sets its own
// before each call. All ranks call Tag, or none.
func (r *Reducer) Tag() []uint64 {
	r.tags.on = true
	return r.tags.of
}

// part is the shard of rank i in a piece of the vector x. Where the vector ends before it, whole is
// the tail, of which part is what the vector has.
func (r *Reducer) part(x []float32, p *piece, i int) (part, whole []float32) {
	end := p.at + p.n
	part = x[min(p.at+i*p.shard, end):min(p.at+(i+1)*p.shard, end)]
	if len(part) == p.shard {
		return part, part
	}
	return part, r.mem.tail[:p.shard]
}

func (r *Reducer) encode(p *piece) {
	for i := range r.c.Size() {
		x, out := r.x, r.of(p, p.out, i)
		part, whole := r.part(x, p, i)
		if r.mem.lost != nil {
			lost, _ := r.part(r.mem.lost, p, i)
			reduce.Add(op.Float32, lost, part)
			if len(lost) == p.shard {
				whole = lost
			}
			part = lost
		}
		if len(part) < p.shard {
			clear(whole[copy(whole, part):])
		}
		r.k.encode(out, whole)
		if r.mem.lost != nil {
			r.k.add(whole, out, -1)
			copy(part, whole)
		}
	}
}

func (r *Reducer) reduce(p *piece) {
	sum := r.mem.sum[:p.shard]
	for i := range r.c.Size() {
		from := p.in
		if i == r.c.Rank() {
			from = p.out
		}
		if from = r.of(p, from, i); i == 0 {
			r.k.decode(sum, from, r.by)
		} else {
			r.k.add(sum, from, r.by)
		}
	}
	mine := p.mine[:r.k.bytes(p.shard)]
	if r.mem.kept == nil {
		r.k.encode(mine, sum)
		return
	}
	kept := r.mem.kept[p.kept : p.kept+p.shard]
	reduce.Add(op.Float32, kept, sum)
	r.k.encode(mine, kept)
	r.k.add(kept, mine, -1)
}

func (r *Reducer) decode(p *piece) {
	for i := range r.c.Size() {
		from := p.mine[:r.k.bytes(p.shard)]
		if i != r.c.Rank() {
			from = r.of(p, p.all, i)
		}
		r.bad = r.bad || !r.k.finite(from)
		part, whole := r.part(r.x, p, i)
		r.k.decode(whole, from, 1)
		if len(part) < p.shard {
			copy(part, whole)
		}
	}
}

// last is behind the last step.
func (r *Reducer) last() error {
	if r.alike.differ != nil {
		return r.alike.differ
	}
	if r.k == None || r.n == 0 {
		r.bad = !allFinite(r.x)
		r.x = nil
		return nil
	}
	err := r.math.Do(r.pieces[len(r.pieces)-1].decode).Wait(context.Background())
	if r.bad {
		clear(r.mem.lost)
		clear(r.mem.kept)
	}
	r.x = nil
	return err
}

// Queue replaces x by the mean over the ranks, behind the calls of q, which is of the Reducer's
// Comm and on a HostStream or nil. x is in use until the Work is done. After an error it may be
// anything; Err of the Comm has the cause.
func (r *Reducer) Queue(q ccl.Queue, x []float32) ccl.Work {
	if len(x) != r.n {
		err := fmt.Errorf("quant: a vector of %d elements; New had %d", len(x), r.n)
		return q.Do(func() error { return err })
	}
	r.x, r.bad = x, false
	if r.alike.facts != nil {
		r.compare(q)
	}
	if r.tags.on && len(r.steps) == 0 && len(r.tags.of) > 1 {
		q.Group(r.tags.tell)
	}
	if r.k == None && r.n > 0 {
		op := ccl.Avg
		if r.o.Sum {
			op = ccl.Sum
		}
		q.AllReduce(ccl.BufOf(x), ccl.InPlace(), op)
	}
	for i := range r.steps {
		q.Do(r.steps[i].before)
		if move := r.steps[i].move; move != nil {
			q.Group(move)
		}
	}
	if r.end.moved = q.Do(r.finish); len(r.steps) == 0 {
		return r.end.moved
	}
	return r.end.stream.Do(r.end.wait)
}

// factTexts say what a rank has; it must be the same on all.
var factTexts = [...]func(int64) string{
	func(x int64) string { return fmt.Sprintf("the codec %v", Codec(x)) },
	func(x int64) string { return fmt.Sprintf("%d elements", x) },
	func(x int64) string { return fmt.Sprintf("a Piece of %d bytes", x) },
	func(x int64) string { return fmt.Sprintf("Feedback %t", x != 0) },
	func(x int64) string { return fmt.Sprintf("Sum %t", x != 0) },
}

// compare has all ranks hear what the others have. If they differ the Comm fails, since its ranks would not make
// the same calls.
func (r *Reducer) compare(q ccl.Queue) {
	all, mine := r.alike.facts, []int64{int64(r.k), int64(r.n), int64(r.o.Piece), 0, 0}
	for i, x := range []bool{r.o.Feedback, r.o.Sum} {
		if x {
			mine[3+i] = 1
		}
	}
	r.alike.facts = nil
	q.AllGather(ccl.BufOf(all), ccl.BufOf(mine))
	q.Do(func() error {
		for i, x := range all {
			if fact := i % len(mine); x != all[fact] {
				text := factTexts[fact]
				r.alike.differ = fmt.Errorf("quant: ranks differ: rank 0 has %s, rank %d has %s", text(all[fact]),
					i/len(mine), text(x))
				r.c.Abort(r.alike.differ)
				break
			}
		}
		return nil
	})
}

// Avg replaces x by the mean over the ranks, or by the sum with Options.Sum. Where that is not
// finite the error of all ranks is ErrNotFinite, and the Reducer may be used again. As with any
// blocking call, the end of ctx fails the Comm; x is not in use any more once Avg returns.
func (r *Reducer) Avg(ctx context.Context, x []float32) error {
	w := r.Queue(r.c.On(nil), x)
	err := w.Wait(ctx)
	if done, _ := w.Test(); !done {
		r.c.Abort(err)
		err = cmp.Or(w.Wait(context.Background()), err)
	}
	if err != nil {
		if e := r.c.Err(); e != nil {
			err = e
		}
		return fmt.Errorf("quant: %w", err)
	}
	if r.bad {
		return fmt.Errorf("quant: %w", ErrNotFinite)
	}
	return nil
}

// Finite reports whether the last mean had no NaN and no infinity, once its Work is done. All ranks get
// the same answer.
func (r *Reducer) Finite() bool { return !r.bad }

// Bytes is how many bytes this rank sends in a call.
func (r *Reducer) Bytes() int64 {
	n := int64(r.c.Size() - 1)
	if r.k == None {
		return 2 * n * 4 * int64(r.n) / (n + 1)
	}
	bytes := int64(0)
	for i := range r.pieces {
		bytes += 2 * n * int64(r.k.bytes(r.pieces[i].shard))
	}
	return bytes
}
