// Package gen continues prompts.
package gen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/goccl/goccl/train/fit/internal/units"
	"github.com/goccl/goccl/train/fit/sample"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// Options are fit.GenerateOptions.
type Options struct {
	Tokens  int
	Sample  sample.Options
	Seed    uint64
	Stop    []int32
	NoCache bool
}

// Generate is fit.Trainer's.
func Generate(ctx context.Context, t *units.Set, prompts [][]int32, o Options) (rows [][]int32, err error) {
	g := &generation{t: t, o: o}
	if err := g.check(prompts); err != nil {
		return nil, err
	}
	free, err := gather(ctx, t)
	defer func() { err = errors.Join(err, free()) }()
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, c := range g.caches {
			err = errors.Join(err, xla.FreeAll(c...))
		}
	}()
	return g.run(ctx, prompts)
}

// gather makes all parameters arguments of programs, until what it returns is called.
func gather(ctx context.Context, t *units.Set) (free func() error, err error) {
	held, own := make([][][]*xla.Buffer, len(t.Stores)), []*xla.Buffer(nil)
	var ends []func() error
	free = func() error {
		t.Held = nil
		err := xla.FreeAll(own...)
		for _, end := range ends {
			err = errors.Join(err, end())
		}
		return err
	}
	for i, s := range t.Stores {
		q, is := s.(*units.Quantized)
		whole := is && !q.Sharded()
		for u := range t.Params {
			open, err := s.Open(ctx, u)
			if err != nil {
				return free, err
			}
			if t.O.Stage < 3 || whole {
				ends = append(ends, func() error { return s.Done(u, open) })
				held[i] = append(held[i], open)
				continue
			}
			var list []*xla.Buffer // copies, since the memory is that of other units next
			for _, b := range open {
				p, failed := t.Program(ctx, fmt.Sprintf("copy_%d_%s", b.Len(), b.Type()), func(f *hlo.Func) []nn.V {
					x := f.Arg(b.Type(), b.Len())
					return []nn.V{x.Add(f.Const(b.Type(), 0))}
				})
				var out []*xla.Buffer
				if err = failed; err == nil {
					if out, err = p.Run(0, b); err == nil {
						err = out[0].Wait()
					}
				}
				list = append(list, out...)
			}
			held[i], own = append(held[i], list), append(own, list...)
			if err = errors.Join(err, s.Done(u, open)); err != nil {
				return free, err
			}
		}
	}
	t.Held = held
	return free, nil
}

// generation is that of some rows.
type generation struct {
	t      *units.Set
	o      Options
	room   int
	caches [][]*xla.Buffer // by unit: what it kept
}

func (g *generation) check(prompts [][]int32) error {
	longest := 0
	for i, p := range prompts {
		if len(p) == 0 {
			return fmt.Errorf("fit: prompt %d is empty: give it a token to begin with", i)
		}
		if at := g.t.Unknown(p, false); at >= 0 {
			return fmt.Errorf("fit: prompt %d has the token %d at %d, and the model knows %d", i, p[at], at, g.t.Known(false))
		}
		longest = max(longest, len(p))
	}
	switch most := cmp.Or(g.t.Model.Room, mostRoom); {
	case len(prompts) == 0 || g.o.Tokens < 1:
		return fmt.Errorf("fit: %d prompts to be continued by %d tokens; both must be at least 1", len(prompts), g.o.Tokens)
	case g.o.Tokens > most-longest:
		return fmt.Errorf("fit: a prompt of %d tokens to be continued by %d: the model generates rows of at most %d",
			longest, g.o.Tokens, most)
	default:
		g.room = min(bucket(longest+g.o.Tokens), most)
	}
	return g.o.Sample.Check()
}

// mostRoom is how many tokens a row may have where the model does not say.
const mostRoom = 1 << 24

// bucket is n rounded up, so that the lengths that programs are for are few: multiples of 16 up to 128, and from there
// on four between a power of two and the next.
func bucket(n int) int {
	step := max(1<<bits.Len(uint(n-1))/8, 16)
	return (n + step - 1) / step * step
}

// run feeds what all rows have, and then a token of each at a time: of its prompt as long as there are some, else
// what was chosen. The first time rows are filled up to a bucket with what does not matter: no token sees those behind
// it, and the keys of these are replaced when their turn comes.
func (g *generation) run(ctx context.Context, prompts [][]int32) (rows [][]int32, err error) {
	shortest := len(prompts[0])
	var rnd []*rand.Rand
	ended := make([]bool, len(prompts))
	for i, p := range prompts {
		rows = append(rows, slices.Clone(p))
		rnd = append(rnd, rand.New(rand.NewPCG(g.o.Seed, uint64(i))))
		shortest = min(shortest, len(p))
	}
	fed := 0
	for at := shortest; slices.Contains(ended, false); at++ { // tokens that each row has, and no row's are all fed
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		width := at - fed
		switch {
		case g.o.NoCache:
			width = g.room
		case fed == 0:
			width = min(bucket(at), g.room)
		}
		var in []int32
		for _, row := range rows {
			for k := fed; k < fed+width; k++ {
				in = append(in, row[min(k, len(row)-1)]) // a row that has ended goes on with its last token
			}
		}
		logits, err := g.next(ctx, in, len(rows), fed, at-fed-1)
		if err != nil {
			return nil, err
		}
		if fed = at; g.o.NoCache {
			fed = 0
		}
		v := len(logits) / len(rows)
		for i := range rows {
			if ended[i] || len(rows[i]) > at {
				continue
			}
			token := int32(g.o.Sample.Token(logits[i*v:(i+1)*v], rnd[i]))
			rows[i] = append(rows[i], token)
			ended[i] = len(rows[i]) == len(prompts[i])+g.o.Tokens || slices.Contains(g.o.Stop, token)
		}
	}
	return rows, nil
}

// next is the logits after token end of each row of in, the first of which stand at pos.
func (g *generation) next(ctx context.Context, in []int32, rows, pos, end int) (logits []float32, err error) {
	t, w := g.t, &units.Walk{T: g.t, Ctx: ctx}
	width := len(in) / rows
	put := func(x []int32, dims ...int) (b *xla.Buffer) {
		if w.Err == nil {
			if b, w.Err = xla.Put(t.M.Client(), x, dims...); w.Err == nil {
				w.Live = append(w.Live, b)
			}
		}
		return b
	}
	args := []*xla.Buffer{put(in, rows, width), put([]int32{int32(pos)}, 1), put([]int32{int32(end)}, 1)}
	first := g.caches == nil || g.o.NoCache
	if g.caches == nil {
		g.caches = make([][]*xla.Buffer, len(t.Model.Units))
	}
	var x []*xla.Buffer
	for u := range t.Model.Units {
		had := g.caches[u]
		name := fmt.Sprintf("%s_next_%d_%d_%d_%v_%v", t.Model.Kind(u), rows, width, g.room, first, g.o.NoCache)
		var p *xla.Program
		if w.Err == nil {
			p, err = t.Own(name, func(f *hlo.Func) []nn.V {
				has := map[string]nn.V{}
				t.Declare(f, u, has)
				var xv nn.V
				if u > 0 {
					xv = f.Arg(x[0].Type(), x[0].Dims()...)
				}
				pass := &nn.Pass{Fn: f, Has: has, In: []nn.V{f.Arg(hlo.I32, rows, width)},
					Next: &nn.Next{Pos: f.Arg(hlo.I32, 1), Room: g.room}}
				till := f.Arg(hlo.I32, 1)
				for _, c := range had {
					pass.Next.Cache = append(pass.Next.Cache, f.Arg(c.Type(), c.Dims()...))
				}
				if g.o.NoCache { // positions begin at 0, and nothing is kept
					pass.Next = nil
				}
				y := t.Model.Write(pass, u, xv)
				if u == t.Last() {
					zero := f.Const(hlo.I32, 0)
					d := y.Dims()
					return []nn.V{y.Slice([]int{d[0], 1, d[2]}, zero, till.Reshape(), zero).As(hlo.F32)}
				}
				if pass.Next == nil {
					return []nn.V{y}
				}
				return append(pass.Next.Kept, y)
			})
		}
		out := w.Run(p, err, u, slices.Concat(x, args, had)...)
		if w.Err != nil {
			return nil, w.End(nil)
		}
		x = out[len(out)-1:]
		if kept := out[:len(out)-1]; len(kept) > 0 {
			w.Live = slices.DeleteFunc(w.Live, func(b *xla.Buffer) bool { return slices.Contains(kept, b) })
			w.Err = xla.FreeAll(had...)
			g.caches[u] = slices.Clone(kept)
		}
	}
	logits = make([]float32, x[0].Len())
	if w.Err == nil {
		w.Err = xla.Get(x[0], logits)
	}
	return logits, w.End(nil)
}
