package whole_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/internal/host"
	"github.com/goccl/goccl/train/internal/raw"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/optim/whole"
	"github.com/goccl/goccl/train/zero"
)

// shapes are matrices that lie, stand and are square, vectors, scalars and what has no elements.
var shapes = [][]whole.Tensor{
	{{Name: "a", Rows: 16, Cols: 25}, {Name: "b", Rows: 1, Cols: 7}, {Name: "c", Rows: 1, Cols: 1}, {Name: "d", Rows: 0, Cols: 5}},
	{{Name: "e", Rows: 5, Cols: 3}, {Name: "f", Rows: 9, Cols: 1}},
	{},
	{{Name: "g", Rows: 40, Cols: 4}, {Name: "h", Rows: 12, Cols: 12}, {Name: "i", Rows: 3, Cols: 50}},
	{{Name: "j", Rows: 1, Cols: 1}},
}

func lengths() (units [][]int) {
	for _, list := range shapes {
		u := []int{}
		for _, t := range list {
			u = append(u, t.Rows*t.Cols)
		}
		units = append(units, u)
	}
	return units
}

// courses are rules for all parameters. In "mixed" each parameter has another one.
var courses = map[string]func(step, unit, param int) whole.Rule{
	"lamb": func(step, _, param int) whole.Rule {
		return whole.LAMB{LR: .01 / float64(step), Decay: .1 * float64(param), Most: 5}
	},
	"adafactor": func(int, int, int) whole.Rule { return whole.Adafactor{LR: .05, Decay: .1} },
	"muon":      func(_, unit, _ int) whole.Rule { return whole.Muon{LR: .02, Decay: .1, MatchAdamW: unit > 0} },
	"adamw":     func(int, int, int) whole.Rule { return optim.AdamW{LR: .01} },
	"mixed": func(_, unit, param int) whole.Rule {
		return []whole.Rule{whole.Muon{LR: .02, Plain: true}, optim.AdamW{LR: .01}, whole.LAMB{LR: .01}, whole.Adafactor{LR: .05}, nil}[(unit+param)%5]
	},
}

const both = 10 // steps

func initial(unit, param int) []float32 {
	return numbers[float32](1+10*unit+param, lengths()[unit][param])
}

// gradient is that of a step, which one rank has: so the sum over the ranks is the same, however many there are.
func gradient(step, unit, param int) []float32 {
	return numbers[float32](1000*step+10*unit+param, lengths()[unit][param])
}

// byHand makes the steps of a course by the functions for whole tensors.
func byHand(t testing.TB, name string, steps int) (all [][][]float32) {
	w := &whole.Workspace[float32]{}
	for i, list := range shapes {
		all = append(all, nil)
		for j, x := range list {
			p := initial(i, j)
			n := len(p)
			m, v := make([]float32, n), make([]float32, n)
			rows, cols := x.State()
			row, col := make([]float32, rows), make([]float32, cols)
			for k := 1; k <= steps; k++ {
				g := gradient(k, i, j)
				var err error
				switch h := courses[name](k, i, j).(type) {
				case whole.LAMB:
					err = whole.ApplyLAMB(h, k, x, p, g, m, v)
				case whole.Adafactor:
					err = whole.ApplyAdafactor(h, k, x, p, g, row, col)
				case whole.Muon:
					err = whole.ApplyMuon(h, x, p, g, m, w)
				case optim.AdamW:
					err = optim.Apply(h, k, p, g, m, v)
				}
				require.NoError(t, err)
			}
			all[i] = append(all[i], p)
		}
	}
	return all
}

// On 1 to 4 ranks, at all stages, where shards cut tensors, the parameters after ten steps are those of the functions
// for whole tensors. Where nothing is summed, under Muon and AdamW, and on one rank, so are their bits.
func TestOptimizerIsThatOfWholeTensors(t *testing.T) {
	for name := range courses {
		want := byHand(t, name, both)
		for ranks := 1; ranks <= 4; ranks++ {
			for stage := range 4 {
				if testing.Short() && ranks != 3 || ranks == 1 && stage != 1 {
					continue
				}
				dir := filepath.Join(t.TempDir(), "masters")
				ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
					what := fmt.Sprintf("%s, %d ranks, stage %d", name, ranks, stage)
					r := newRun[float32](t, c, name, zero.Options{Stage: stage})
					r.take(t, c, 1, both)
					got := r.masters(t, c, dir)
					within := 1e-6
					if name == "muon" || name == "adamw" || ranks == 1 || stage == 0 {
						within = 0
					}
					near(t, within, want, got, what)
					require.NoError(t, r.m.Close())
				})
			}
		}
	}
}

// Tensors are cut, by ranks that have parts and ranks that have none: else these tests show nothing.
func TestShapesAreCut(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		m, err := zero.New[float32, float32](t.Context(), c, lengths(), &zero.Options{Stage: 1})
		require.NoError(t, err)
		defer m.Close()
		parts := []int{0, 0} // of a tensor, and units of which this rank has nothing
		for i := range shapes {
			for _, p := range m.Pieces(i) {
				if p.Hi-p.Lo < lengths()[i][p.Param] {
					parts[0]++
				}
			}
			if len(m.Pieces(i)) == 0 {
				parts[1]++
			}
		}
		all := make([]int, 6)
		require.NoError(t, ccl.AllGather(t.Context(), c, all, parts))
		require.Equal(t, []int{2, 1, 3, 2, 2, 3}, all)
	})
}

// alike runs a course with those Options on one rank, and on n ranks at stages 1 to 3, and compares the masters. with adds to the
// Options of a rank.
func alike[P zero.Float](t *testing.T, name string, n int, o zero.Options, with func(t testing.TB, c *ccl.Comm, o *zero.Options)) {
	var want [][][]float32
	for stage := range 4 {
		o.Stage = stage
		ranks := n
		if stage == 0 {
			ranks = 1
		} else if testing.Short() && stage < 3 {
			continue
		}
		dir := filepath.Join(t.TempDir(), "masters")
		ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
			o := o
			if with != nil {
				with(t, c, &o)
			}
			r := newRun[P](t, c, name, o)
			r.take(t, c, 1, both)
			got := r.masters(t, c, dir)
			if stage == 0 {
				want = got
			} else {
				near(t, 1e-6, want, got, fmt.Sprintf("%s, stage %d", name, stage))
			}
			require.NoError(t, r.m.Close())
		})
	}
}

// apart is memory of the host that a Model takes for a device's: each call waits for the stream.
type apart struct{ *host.Memory }

func (a apart) now() host.Now {
	_ = a.S.Do(host.Nothing).Wait(context.Background())
	return host.Now{Memory: a.Memory}
}
func (a apart) Zero(dst ccl.Buf) error                  { return a.now().Zero(dst) }
func (a apart) Add(dst, src ccl.Buf) error              { return a.now().Add(dst, src) }
func (a apart) Scale(dst ccl.Buf, by float64) error     { return a.now().Scale(dst, by) }
func (a apart) Divide(dst ccl.Buf, n int) error         { return a.now().Divide(dst, n) }
func (a apart) Convert(dst, src ccl.Buf) error          { return a.now().Convert(dst, src) }
func (a apart) SumSquares(src ccl.Buf) (float64, error) { return a.now().SumSquares(src) }
func (a apart) Get(dst []byte, src ccl.Buf) error {
	a.now()
	b, err := raw.Bytes(src)
	copy(dst, b)
	return err
}
func (a apart) Put(dst ccl.Buf, src []byte) error {
	a.now()
	b, err := raw.Bytes(dst)
	copy(b, src)
	return err
}

// Clipped gradients, masters beside parameters in bfloat16 or on the host alone, frozen parameters and a Disk are as on
// one rank. State is in memory.
func TestOptimizerWithOptions(t *testing.T) {
	for _, name := range []string{"lamb", "adafactor", "muon", "mixed"} {
		t.Run(name, func(t *testing.T) {
			alike[float32](t, name, 3, zero.Options{Clip: 2}, nil)
			alike[ccl.BFloat16](t, name, 2, zero.Options{Clip: 2}, nil)
			alike[float32](t, name, 3, zero.Options{
				Frozen:      func(unit int) bool { return unit == 1 },
				FrozenParam: func(unit, param int) bool { return unit == 3 && param == 1 },
			}, nil)
			alike[ccl.BFloat16](t, name, 2, zero.Options{Clip: 2, Offload: true}, func(t testing.TB, c *ccl.Comm, o *zero.Options) {
				if o.Stage > 0 {
					o.Memory = apart{host.New(t.Context(), c)}
				}
			})
			alike[ccl.BFloat16](t, name, 2, zero.Options{}, onDisk)
		})
	}
}

// Between hosts the parameters are those of one rank, too, and Adafactor's averages are the same bits on all ranks.
func TestOptimizerBetweenHosts(t *testing.T) {
	for _, name := range []string{"adafactor", "mixed"} {
		want, dir := byHand(t, name, both), filepath.Join(t.TempDir(), "masters")
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			r := newRun[float32](t, c, name, zero.Options{Stage: 3})
			r.take(t, c, 1, both)
			near(t, 1e-6, want, r.masters(t, c, dir), name)
			state, err := r.o.Tensors(nil)
			require.NoError(t, err)
			mine := []uint64{}
			for _, x := range state {
				if strings.HasPrefix(x.Name, "adafactor.") {
					mine = append(mine, ddp.Hash(x.Data.([]float32)))
				}
			}
			all := make([]uint64, 3*len(mine))
			require.NoError(t, ccl.AllGather(t.Context(), c, all, mine))
			require.Equal(t, slices.Repeat(mine, 3), all)
			require.NoError(t, r.m.Close())
		}, ccltest.Hosts(3))
	}
}

// Two replicas of two ranks that shard (HSDP) have the parameters of one rank.
func TestOptimizerOfReplicas(t *testing.T) {
	for _, name := range []string{"lamb", "mixed"} {
		want, dir := byHand(t, name, both), t.TempDir()
		ccltest.Run(t, 4, func(t testing.TB, world *ccl.Comm) {
			replica := world.Rank() / 2
			c, over := ccltest.Split(t, world, replica, 0), ccltest.Split(t, world, world.Rank()%2, 0)
			r := newRun[float32](t, c, name, zero.Options{Stage: 3, Replicas: over})
			r.quiet = replica == 1
			r.take(t, c, 1, both)
			near(t, 1e-6, want, r.masters(t, c, filepath.Join(dir, name+fmt.Sprint(replica))), name)
			require.NoError(t, r.m.Close())
		})
	}
}

// The state that two ranks have saved at stage 3 goes on on three at stage 1, on one, and on two at stage 0.
func TestOptimizerIsSavedAndLoaded(t *testing.T) {
	const half = both / 2
	for name := range courses {
		want, dir := byHand(t, name, both), filepath.Join(t.TempDir(), "half")
		tensors := func(t testing.TB, r *run[float32]) []ckpt.Tensor {
			ts, err := r.m.Tensors(nil)
			require.NoError(t, err)
			state, err := r.o.Tensors(nil)
			require.NoError(t, err)
			return append(ts, state...)
		}
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			r := newRun[float32](t, c, name, zero.Options{Stage: 3})
			r.take(t, c, 1, half)
			require.NoError(t, ckpt.Save(t.Context(), c, dir, nil, tensors(t, r)))
			require.NoError(t, r.m.Close())
		})
		for _, to := range [][2]int{{3, 1}, {1, 2}, {2, 0}} {
			masters := filepath.Join(t.TempDir(), "masters")
			ccltest.Run(t, to[0], func(t testing.TB, c *ccl.Comm) {
				r := newRun[float32](t, c, name, zero.Options{Stage: to[1]})
				require.NoError(t, ckpt.Load(t.Context(), c, dir, nil, tensors(t, r)))
				require.NoError(t, r.m.Loaded(t.Context()))
				r.take(t, c, half+1, both)
				near(t, 1e-6, want, r.masters(t, c, masters), fmt.Sprintf("%s, on %d ranks at stage %d", name, to[0], to[1]))
				require.NoError(t, r.m.Close())
			})
		}
	}
}

// The state of another optimizer is no state: the error names what is missing.
func TestOptimizerOfAnotherCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lamb")
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		a, b := newRun[float32](t, c, "lamb", zero.Options{Stage: 2}), newRun[float32](t, c, "muon", zero.Options{Stage: 2})
		ts, err := a.o.Tensors(nil)
		require.NoError(t, err)
		require.NoError(t, ckpt.Save(t.Context(), c, dir, nil, ts))
		ts, err = b.o.Tensors(func(unit, param int) ckpt.Tensor {
			return ckpt.Tensor{Name: shapes[unit][param].Name, Shape: []int{lengths()[unit][param]}}
		})
		require.NoError(t, err)
		require.ErrorContains(t, ckpt.Load(t.Context(), c, dir, nil, ts), "muon.m.a")
		f := newRun[float32](t, c, "adafactor", zero.Options{Stage: 2})
		_, err = f.o.Tensors(func(unit, param int) ckpt.Tensor {
			return ckpt.Tensor{Name: "half", Shape: []int{32, 25}, Offset: []int{16, 0}, Size: []int{16, 25}}
		})
		require.EqualError(t, err, `optim/whole: "half" is split, and what is saved of Adafactor is of whole matrices`)
		for _, r := range []*run[float32]{a, b, f} {
			require.NoError(t, r.m.Close())
		}
	})
}

// What New is given wrongly, on any rank, is the error of all.
func TestNewOptimizerRefuses(t *testing.T) {
	rule := func(int, int) whole.Rule { return whole.Muon{} }
	change := func(unit, param int, x whole.Tensor) [][]whole.Tensor {
		all := slices.Clone(shapes)
		all[unit] = slices.Clone(all[unit])
		all[unit][param] = x
		return all
	}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		m, err := zero.New[float32, float32](ctx, c, lengths(), &zero.Options{Stage: 1})
		require.NoError(t, err)
		defer m.Close()
		for _, x := range []struct {
			m    whole.Model[float32]
			of   [][]whole.Tensor
			rule func(int, int) whole.Rule
			want string
		}{
			{nil, shapes, rule, "optim/whole: New takes a Model and a rule"},
			{m, shapes, nil, "optim/whole: New takes a Model and a rule"},
			{m, shapes[:4], rule, "optim/whole: rank 0: the Model has more units than the 4 that there are Tensors for"},
			{m, append(slices.Clone(shapes), shapes[0]), rule, `optim/whole: "a" is 16 x 25, and the Model has 0 elements of it`},
			{m, append(slices.Clone(shapes[:4]), nil), rule, "optim/whole: rank 0: unit 4 has a parameter 0, and Tensors for 0"},
			{m, change(1, 0, whole.Tensor{Name: "e", Rows: 5, Cols: 4}), rule, `optim/whole: "e" is 5 x 4, and the Model has 15 elements of it`},
			{m, change(1, 0, whole.Tensor{Name: "e", Rows: 1 << 32, Cols: 1 << 32}), rule, `optim/whole: tensor "e" is 4294967296 x 4294967296`},
			{m, change(1, 0, whole.Tensor{Name: "e", Rows: -5, Cols: -3}), rule, `optim/whole: tensor "e" is -5 x -3`},
			{m, shapes, func(int, int) whole.Rule { return &whole.LAMB{} }, "is a *whole.LAMB, which is no LAMB, Adafactor, Muon or optim.AdamW"},
			{m, shapes, func(int, int) whole.Rule { return []whole.Rule{whole.LAMB{}, whole.Muon{}}[c.Rank()] }, "rank 0 has parameter 0 of unit 0: 16 x 25, whole.LAMB, rank 1 has"},
		} {
			_, err := whole.New(ctx, c, x.m, x.of, x.rule)
			require.ErrorContains(t, err, x.want)
		}
		_, err = whole.New(ctx, nil, m, shapes, rule)
		require.ErrorContains(t, err, "the Comm is nil")
	})
}

// Units that come after one of no elements are found in the first step.
func TestOptimizerOfMoreUnits(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		c := ccltest.Split(t, world, 0, 0)
		r := newRun[float32](t, c, "lamb", zero.Options{Stage: 1})
		o, err := whole.New(t.Context(), c, r.m, shapes[:2], func(int, int) whole.Rule { return whole.LAMB{} })
		require.NoError(t, err)
		ccltest.Barrier(t, world)
		r.step = 1
		r.backward(t, c)
		err = o.Step(t.Context(), 1)
		if c.Rank() == 0 {
			require.ErrorContains(t, err, "optim/whole: the Model has a unit 4, and there are Tensors for 2")
		} else {
			require.Error(t, err)
		}
		require.NoError(t, r.m.Close())
	})
}

// A rule that becomes another one, or is wrong, on one rank alone, ends the step on all of them.
func TestOptimizerStepFailsOnAll(t *testing.T) {
	for want, bad := range map[string]whole.Rule{
		`the rule of "a" was a whole.LAMB, and is a whole.Muon now`: whole.Muon{},
		"optim/whole: LAMB: optim: AdamW with Beta1 1":              whole.LAMB{Beta1: 1},
	} {
		ccltest.Run(t, 3, func(t testing.TB, world *ccl.Comm) {
			c := ccltest.Split(t, world, 0, 0)
			r := newRun[float32](t, c, "lamb", zero.Options{Stage: 3})
			var now whole.Rule = whole.LAMB{}
			var err error
			r.o, err = whole.New(t.Context(), c, r.m, shapes, func(int, int) whole.Rule { return now })
			require.NoError(t, err)
			ccltest.Barrier(t, world)
			r.step = 1
			r.backward(t, c)
			if c.Rank() == 1 {
				now = bad
			}
			err = r.o.Step(t.Context(), 1)
			if c.Rank() == 1 {
				require.ErrorContains(t, err, want)
			} else {
				require.ErrorIs(t, err, ccl.ErrAborted)
			}
			require.NoError(t, r.m.Close())
			ccltest.Barrier(t, world)
		})
	}
}

// Gradients that are not finite change neither parameters nor state, and the next step is as if they had not been.
func TestOptimizerSkipsWhatIsNotFinite(t *testing.T) {
	for _, name := range []string{"lamb", "adafactor", "muon"} {
		want, dir := byHand(t, name, 3), filepath.Join(t.TempDir(), "masters")
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			r := newRun[float32](t, c, name, zero.Options{Stage: 2})
			r.take(t, c, 1, 2)
			r.step = 3
			for i := len(shapes) - 1; i >= 0; i-- {
				g, err := r.m.Grads(t.Context(), i)
				require.NoError(t, err)
				if i == 0 {
					g[0][3] = float32(math.Inf(1))
				}
				require.NoError(t, r.m.Reduce(i))
			}
			require.ErrorIs(t, r.o.Step(t.Context(), 3), zero.ErrNotFinite)
			r.take(t, c, 3, 3)
			near(t, 1e-6, want, r.masters(t, c, dir), name)
			require.NoError(t, r.m.Close())
		})
	}
}
