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
}

// Units are the lengths of the parameters of each unit, on one of n ranks that split the blocks.
func (c Config) Units(n int) [][]int {
	w := c.Width
	units := [][]int{{c.Vocab * w, c.Context * w}}
	for range c.Layers {
		units = append(units, []int{w, w * 3 * w / n, w * w / n, w, w * 4 * w / n, 4 * w * w / n})
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
	return []string{"ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"}
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

// Params is the number of parameters.
func (c Config) Params() (n int) {
	for _, u := range c.Units(1) {
		for _, l := range u {
			n += l
		}
	}
	return n
}

// Init returns the whole parameters of a unit, the same for a seed on every rank.
func Init[T Float](c Config, unit int, seed uint64) [][]T {
	r := rand.New(rand.NewPCG(seed, uint64(unit)))
	deep := .02 / math.Sqrt(2*float64(c.Layers))
	std := []float64{0, .02, deep, 0, .02, deep} // 0: all ones
	switch unit {
	case 0:
		std = []float64{.02, .02}
	case c.Layers + 1:
		std = []float64{0, .02}
	}
	var out [][]T
	for j, n := range c.Units(1)[unit] {
		p := make([]T, n)
		for i := range p {
			if p[i] = 1; std[j] != 0 {
				p[i] = T(r.NormFloat64() * std[j])
			}
		}
		out = append(out, p)
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
	K     Kernels[T]
	split Split[T]
	att   Attention[T]
	n     int // tokens of a micro batch that the layers of a block see
	s     int // those of them that this rank has between blocks
	from  int // the first of a sequence's tokens that is here
	run   int // how many of each sequence are here
	acts  map[int][]*act[T]
	free  []*act[T]
	head  map[int]*headAct[T]
	mem   map[string][]T
	again *recomputed[T] // nil: activations are kept
}

type act[T Float] struct {
	ln1, xh1, rs1, qkv, att, y, ln2, xh2, rs2, h, s, g []T
	kept                                               any // of an Attention
}

type headAct[T Float] struct{ ln, xh, rs, d []T } // d: the gradient of the logits, times the tokens

// NewNet makes a net for micro batches of rows sequences. split may be nil.
func NewNet[T Float](c Config, rows int, split Split[T]) *Net[T] {
	if split == nil {
		split = whole[T]{}
	}
	n := &Net[T]{Config: c, K: Reference[T](), split: split, n: rows * c.Context, acts: map[int][]*act[T]{},
		head: map[int]*headAct[T]{}, mem: map[string][]T{}}
	if n.s = n.n; split.Sequence() {
		n.s /= split.Size()
	}
	n.run = c.Context
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

// Across splits each sequence over ranks: this rank has part rank of size, which must divide the context.
func (n *Net[T]) Across(rank, size int, a Attention[T]) {
	n.run = n.Context / size
	n.from = n.run * rank
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
			return 0, n.lightly(p, micro, x)
		}
		err = n.block(p, micro, x)
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
			if err := n.restore(p, micro); err != nil {
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
		k, t := int(tokens[at+i]), n.from+(at+i)%n.run
		row := x[i*w : i*w+w]
		copy(row, p[0][k*w:])
		n.K.Add(row, p[1][t*w:t*w+w])
	}
}

func (n *Net[T]) embedBack(g [][]T, tokens []int32, dx []T) {
	w, at := n.Width, n.first()
	for i := range n.s {
		k, t := int(tokens[at+i]), n.from+(at+i)%n.run
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
	n.free = append(n.free, n.acts[micro]...)
	n.acts[micro] = n.acts[micro][:0]
	if n.again != nil {
		n.again.forget(micro)
	}
}
