// Package gpt is nanoGPT's GPT-2 without biases, forward and backward on slices, in units that package zero shards and
// package pp puts on stages: the embedding, the blocks, the head. It is a model for the tests of train and for
// examples/gpt, which is why it is not in either. Its arithmetic can be replaced; see Kernels.
package gpt

import (
	"math"
	"math/rand/v2"
)

// Float is what it computes in.
type Float interface{ ~float32 | ~float64 }

// Config is the shape of a model.
type Config struct {
	Vocab, Context, Width, Heads, Layers int
	// Tied has the head use the embedding of tokens, as GPT-2 does: lm_head is wte.
	Tied bool
	// Sparse has experts in the blocks.
	Sparse Sparse
}

// Sparse is experts in the place of the MLP of each block, of which a token takes a few.
type Sparse struct {
	// Experts is how many a block has, 0 for none, and Top how many of them a token takes.
	Experts, Top int
	// Shared keeps the MLP beside the experts, for all tokens.
	Shared bool
}

// mlp reports whether blocks have one.
func (s Sparse) mlp() bool { return s.Experts == 0 || s.Shared }

// after is where the parameters of a block from its router on begin.
func (s Sparse) after() int {
	if s.Shared {
		return 6
	}
	return 4
}

// Units are the lengths of the parameters of each unit, on one of n ranks that split the blocks. Those of
// experts are not among them: see Sparse.
func (c Config) Units(n int) [][]int {
	w := c.Width
	units := [][]int{{c.Vocab * w, c.Context * w}}
	for range c.Layers {
		unit := []int{w, w * 3 * w / n, w * w / n, w}
		if c.Sparse.mlp() {
			unit = append(unit, w*4*w/n, 4*w*w/n)
		}
		if c.Sparse.Experts > 0 {
			unit = append(unit, w*c.Sparse.Experts)
		}
		units = append(units, unit)
	}
	if c.Tied {
		return append(units, []int{w})
	}
	return append(units, []int{w, w * c.Vocab})
}

// Names are those of the parameters of a unit, as nanoGPT has them.
func (c Config) Names(unit int) []string {
	switch unit {
	case 0:
		return []string{"wte", "wpe"}
	case c.Layers + 1:
		if c.Tied {
			return []string{"ln_f"}
		}
		return []string{"ln_f", "lm_head"}
	}
	names := []string{"ln_1", "attn.c_attn", "attn.c_proj", "ln_2"}
	if c.Sparse.mlp() {
		names = append(names, "mlp.c_fc", "mlp.c_proj")
	}
	if c.Sparse.Experts > 0 {
		names = append(names, "mlp.router")
	}
	return names
}

// Decays reports whether a parameter is subject to weight decay: matrices are, but not the embeddings.
func (c Config) Decays(unit, param int) bool {
	switch unit {
	case 0:
		return false
	case c.Layers + 1:
		return param == 1 && !c.Tied
	}
	return param != 0 && param != 3
}

// Params is the number of parameters, with all experts.
func (c Config) Params() (n int) {
	for _, u := range c.Units(1) {
		for _, l := range u {
			n += l
		}
	}
	return n + c.Layers*c.Sparse.Experts*8*c.Width*c.Width
}

// Active is how many parameters a token meets: of the experts those that it takes.
func Active(c Config) int {
	return c.Params() - c.Layers*(c.Sparse.Experts-c.Sparse.Top)*8*c.Width*c.Width
}

// InitExpert returns the two matrices of an expert of a layer, from 0 on.
func InitExpert[T Float](c Config, layer, expert int, seed uint64) [][]T {
	r, n := rand.New(rand.NewPCG(seed, uint64(layer+1)|uint64(expert+1)<<32)), 4*c.Width*c.Width
	return [][]T{normal[T](r, n, .02), normal[T](r, n, .02/math.Sqrt(2*float64(c.Layers)))}
}

// normal are n random numbers with that standard deviation; ones, if it is 0.
func normal[T Float](r *rand.Rand, n int, std float64) []T {
	p := make([]T, n)
	for i := range p {
		if p[i] = 1; std != 0 {
			p[i] = T(r.NormFloat64() * std)
		}
	}
	return p
}

// Init returns the whole parameters of a unit, the same for a seed on every rank.
func Init[T Float](c Config, unit int, seed uint64) [][]T {
	r := rand.New(rand.NewPCG(seed, uint64(unit)))
	deep := .02 / math.Sqrt(2*float64(c.Layers))
	std := []float64{0, .02, deep, 0, .02, deep, .02} // 0: all ones
	if !c.Sparse.mlp() {
		std = append(std[:4], .02)
	}
	switch unit {
	case 0:
		std = []float64{.02, .02}
	case c.Layers + 1:
		std = []float64{0, .02}
	}
	var out [][]T
	for j, n := range c.Units(1)[unit] {
		out = append(out, normal[T](r, n, std[j]))
	}
	return out
}

// Split is how the blocks are split over ranks: package tp's four functions, on this rank's part of the tokens where it
// has Sequence.
type Split[T Float] interface {
	Rank() int
	Size() int
	Sequence() bool
	Enter(full, x []T) ([]T, error)
	EnterGrad(dx, dfull []T) ([]T, error)
	Leave(y, partial []T) ([]T, error)
	LeaveGrad(full, dy []T) ([]T, error)
}

// whole is the Split of one rank.
type whole[T Float] struct{}

func (whole[T]) Rank() int                           { return 0 }
func (whole[T]) Size() int                           { return 1 }
func (whole[T]) Sequence() bool                      { return false }
func (whole[T]) Enter(_, x []T) ([]T, error)         { return x, nil }
func (whole[T]) EnterGrad(_, dfull []T) ([]T, error) { return dfull, nil }
func (whole[T]) Leave(_, partial []T) ([]T, error)   { return partial, nil }
func (whole[T]) LeaveGrad(_, dy []T) ([]T, error)    { return dy, nil }

// Net computes on one rank. It keeps the activations of each micro batch from forward to backward.
type Net[T Float] struct {
	Config
	K Kernels[T]
	// Experts are those of the blocks, where the Config has any.
	Experts Experts[T]
	split   Split[T]
	att     Attention[T]
	n       int  // tokens of a micro batch that the layers of a block see
	s       int  // those of them that this rank has between blocks
	seq     span // of each sequence, what is here
	acts    acts[T]
	head    map[int]*headAct[T]
	mem     map[string][]T
	again   *recomputed[T] // nil: activations are kept
}

// span is so many tokens of a sequence from one on.
type span struct{ from, run int }

// acts are activations: those of each micro batch, and what is free.
type acts[T Float] struct {
	of   map[int][]*act[T]
	free []*act[T]
}

type act[T Float] struct {
	ln1, xh1, rs1, qkv, att, y, ln2, xh2, rs2, h, s, g []T
	kept, routed                                       any // of an Attention, and of Experts
}

type headAct[T Float] struct{ ln, xh, rs, d []T } // d: the gradient of the logits, times the tokens

// NewNet makes a net for micro batches of rows sequences. split may be nil.
func NewNet[T Float](c Config, rows int, split Split[T]) *Net[T] {
	if split == nil {
		split = whole[T]{}
	}
	n := &Net[T]{Config: c, K: Reference[T](), split: split, n: rows * c.Context, acts: acts[T]{of: map[int][]*act[T]{}},
		head: map[int]*headAct[T]{}, mem: map[string][]T{}}
	if n.s = n.n; split.Sequence() {
		n.s /= split.Size()
	}
	n.seq.run = c.Context
	return n
}

// Attention is attention over sequences that are split among ranks, each of which has the same part of all. Where a Net
// has one it takes the place of Attend and AttendBack.
type Attention[T Float] interface {
	// Forward sets y, [tokens][width], of qkv, [tokens][3*width]. What it returns is given to Backward.
	Forward(qkv, y []T) (kept any, err error)
	// Backward sets dqkv.
	Backward(kept any, qkv, dy, dqkv []T) error
}

// Experts are the experts of the blocks, of which ranks may have some each: what package ep exchanges. p and g are the
// parameters and the gradients of a block from its router on, [Width][Experts]: for each expert of this rank follow two
// matrices as this rank of the Split has them of an MLP. Forward and Backward call beside, if it is not nil, once,
// while tokens are under way. What ranks of the Split make are parts of sums: the Net makes those of y and dx, and the
// program that of the gradient of the router.
type Experts[T Float] interface {
	// Forward sets y to what the experts of a layer, from 0 on, make of x, [tokens][Width]. What it returns is given to
	// Backward.
	Forward(layer int, p [][]T, x, y []T, beside func()) (kept any, err error)
	// Backward sets dx to the gradient of x, given that of y, and adds to g.
	Backward(kept any, p, g [][]T, x, dy, dx []T, beside func()) error
}

// Across splits each sequence over ranks: this rank has part rank of size, which must divide the context.
func (n *Net[T]) Across(rank, size int, a Attention[T]) {
	n.seq.run = n.Context / size
	n.seq.from = n.seq.run * rank
	n.n /= size
	n.s, n.att = n.n, a
}

// Len is the number of activations that go from unit to unit.
func (n *Net[T]) Len() int { return n.s * n.Width }

// first is the first of this rank's tokens.
func (n *Net[T]) first() int {
	if n.split.Sequence() {
		return n.s * n.split.Rank()
	}
	return 0
}

// scratch is memory by name, all zero if asked for.
func (n *Net[T]) scratch(name string, size int, zero bool) []T {
	s := n.mem[name]
	if len(s) < size {
		s = make([]T, size)
		n.mem[name] = s
	}
	if s = s[:size]; zero {
		clear(s)
	}
	return s
}

// Forward computes unit u of the model from x to x, in place; Embedding ignores what x was. With
// the head it returns the mean loss over this rank's tokens; targets are needed there alone, tokens
// in the embedding. The head's second parameter is wte where it is tied, and its second gradient
// that of wte.
func (n *Net[T]) Forward(u int, p [][]T, micro int, x []T, tokens, targets []int32) (loss float64, err error) {
	switch u {
	case 0:
		n.embed(p, tokens, x)
	case n.Layers + 1:
		return n.loss(p, micro, x, targets), nil
	default:
		if n.again != nil {
			return 0, n.lightly(u, p, micro, x)
		}
		err = n.block(u, p, micro, x)
	}
	return 0, err
}

// Backward computes dx in place, and adds to the gradients g; the head ignores what dx was.
func (n *Net[T]) Backward(u int, p, g [][]T, micro int, dx []T, tokens, _ []int32) error {
	switch u {
	case 0:
		n.embedBack(g, tokens, dx)
	case n.Layers + 1:
		n.lossBack(p, g, micro, dx)
	default:
		if n.again != nil {
			if err := n.restore(u, p, micro); err != nil {
				return err
			}
		}
		return n.blockBack(p, g, micro, dx)
	}
	return nil
}

func (n *Net[T]) embed(p [][]T, tokens []int32, x []T) {
	w, at := n.Width, n.first()
	for i := range n.s {
		k, t := int(tokens[at+i]), n.seq.from+(at+i)%n.seq.run
		row := x[i*w : i*w+w]
		copy(row, p[0][k*w:])
		n.K.Add(row, p[1][t*w:t*w+w])
	}
}

func (n *Net[T]) embedBack(g [][]T, tokens []int32, dx []T) {
	w, at := n.Width, n.first()
	for i := range n.s {
		k, t := int(tokens[at+i]), n.seq.from+(at+i)%n.seq.run
		row := dx[i*w : i*w+w]
		n.K.Add(g[0][k*w:k*w+w], row)
		n.K.Add(g[1][t*w:t*w+w], row)
	}
}

// logits computes those of all this rank's tokens.
func (n *Net[T]) logits(p [][]T, micro int, x []T) *headAct[T] {
	h := n.head[micro]
	if h == nil {
		h = &headAct[T]{make([]T, n.s*n.Width), make([]T, n.s*n.Width), make([]T, n.s), make([]T, n.s*n.Vocab)}
		n.head[micro] = h
	}
	n.K.Norm(h.ln, h.xh, h.rs, x, p[0])
	clear(h.d)
	n.K.Mul(false, n.Tied, n.s, n.Vocab, n.Width, h.ln, p[1], h.d)
	return h
}

func (n *Net[T]) loss(p [][]T, micro int, x []T, targets []int32) (loss float64) {
	h, at := n.logits(p, micro, x), n.first()
	for i := range n.s {
		loss += n.K.CrossEntropy(h.d[i*n.Vocab:(i+1)*n.Vocab], int(targets[at+i]))
	}
	return loss / float64(n.s)
}

func (n *Net[T]) lossBack(p, g [][]T, micro int, dx []T) {
	h := n.head[micro]
	n.K.Scale(h.d, 1/T(n.n))
	df := n.scratch("dhead", n.s*n.Width, true)
	n.K.Mul(false, !n.Tied, n.s, n.Width, n.Vocab, h.d, p[1], df)
	if n.Tied {
		n.K.Mul(true, false, n.Vocab, n.Width, n.s, h.d, h.ln, g[1])
	} else {
		n.K.Mul(true, false, n.Width, n.Vocab, n.s, h.ln, h.d, g[1])
	}
	clear(dx)
	n.K.NormBack(h.xh, h.rs, dx, g[0], df, p[0])
}

// Logits are those of this rank's tokens, a row each, of the activations x before the head. They are valid until the
// next call.
func (n *Net[T]) Logits(p [][]T, micro int, x []T) []T { return n.logits(p, micro, x).d }

// Forget drops the activations of a micro batch that has no backward pass.
func (n *Net[T]) Forget(micro int) {
	n.acts.free = append(n.acts.free, n.acts.of[micro]...)
	n.acts.of[micro] = n.acts.of[micro][:0]
	if n.again != nil {
		n.again.forget(micro)
	}
}
