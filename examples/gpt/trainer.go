package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/internal/mat"
	"github.com/goccl/goccl/internal/gpt"
	"github.com/goccl/goccl/train/history/timeline"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/offload"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/pp"
	"github.com/goccl/goccl/train/tp"
	"github.com/goccl/goccl/train/zero"
)

// split is package tp's exchanges as the model calls them.
type split struct {
	ctx context.Context
	g   *tp.Group
}

func (s *split) Rank() int      { return s.g.Comm.Rank() }
func (s *split) Size() int      { return s.g.Comm.Size() }
func (s *split) Sequence() bool { return s.g.Sequence }
func (s *split) Enter(full, x []float32) ([]float32, error) {
	return tp.Enter(s.ctx, s.g, full, x)
}
func (s *split) EnterGrad(dx, dfull []float32) ([]float32, error) {
	return tp.EnterGrad(s.ctx, s.g, dx, dfull)
}
func (s *split) Leave(y, partial []float32) ([]float32, error) {
	return tp.Leave(s.ctx, s.g, y, partial)
}
func (s *split) LeaveGrad(full, dy []float32) ([]float32, error) {
	return tp.LeaveGrad(s.ctx, s.g, full, dy)
}

// trainer is the state of one rank.
type trainer struct {
	cfg     *config
	text    *text
	world   *ccl.Comm
	mesh    *mesh.Mesh
	comms   comms
	split   *split
	net     *gpt.Net[float32]
	units   []int // of the model, on this pipeline stage
	all     []int // and behind them those of experts, as the store has them
	model   store
	experts *experts[float32] // nil: there are none
	adam    moments
	mean    []float64 // the loss of the last step, which belongs to the state after it
	pipe    *pp.Pipeline
	line    *timeline.Timeline // nil: nothing is drawn
	seen    *observed          // nil: nothing is measured

	in, out  [2][2][]float32 // of the pipeline: by direction and buffer
	head     head
	tokens   [][]int32 // of this step, by micro batch
	targets  [][]int32
	validate bool // no backward passes
	loss     float64
	dtf, dtb time.Duration
	bubble   float64
}

// head is what is kept of a tied embedding.
type head struct {
	tied []float32   // one rank has both ends: the gradient of wte that the head makes
	held [][]float32 // else an end with a tied wte: its gradients in all micro batches of a step
	end  int         // that unit, and
	wte  int         // its parameter
	ends *pp.Ends    // of the pipeline, which both have wte
}

// kernels is the arithmetic of package mat.
func kernels() gpt.Kernels[float32] {
	return gpt.Kernels[float32]{Mul: mat.Mul, Add: mat.Add, Scale: mat.Scale, Gelu: mat.Gelu, GeluBack: mat.GeluBack,
		Norm: mat.Norm, NormBack: mat.NormBack, Softmax: mat.Softmax, SoftmaxBack: mat.SoftmaxBack,
		CrossEntropy: mat.CrossEntropy}
}

// newTrainer places the ranks and gives each its part of the model, as it is before the first step. It is collective.
func newTrainer(ctx context.Context, world *ccl.Comm, c *config, t *text) (*trainer, error) {
	tr, err := placeTrainer(ctx, world, c, t)
	if err == nil {
		if err = tr.begin(ctx); err != nil {
			err = errors.Join(err, tr.close())
		}
	}
	return tr, err
}

// placeTrainer is newTrainer without the values of the model's parameters. It is collective.
func placeTrainer(ctx context.Context, world *ccl.Comm, c *config, t *text) (tr *trainer, err error) {
	tr = &trainer{cfg: c, text: t, world: world, mean: []float64{0}}
	defer func() {
		if err != nil {
			err = errors.Join(err, tr.close())
		}
	}()
	if tr.mesh, err = mesh.New(ctx, world, mesh.Dim{Name: "site", Size: c.apart.sites},
		mesh.Dim{Name: "dp", Size: c.dp / c.apart.sites / c.experts.ranks}, mesh.Dim{Name: "ep", Size: c.experts.ranks},
		mesh.Dim{Name: "pp", Size: c.pp},
		mesh.Dim{Name: "sp", Size: c.across}, mesh.Dim{Name: "tp", Size: c.tp}); err != nil {
		return tr, err
	}
	tr.split = &split{ctx, &tp.Group{Comm: tr.mesh.Comm("tp"), Sequence: c.sp == "megatron"}}
	tr.net = gpt.NewNet[float32](c.Config, c.rows/c.dp/c.micro, tr.split)
	tr.net.K = kernels()
	if c.recompute {
		tr.net.Recompute()
	}
	tr.spread()
	stage, per := tr.mesh.Coord("pp"), c.Layers/c.pp
	if stage == 0 {
		tr.units = append(tr.units, 0)
	}
	for l := range per {
		tr.units = append(tr.units, 1+stage*per+l)
	}
	if stage == c.pp-1 {
		tr.units = append(tr.units, c.Layers+1)
	}
	tr.all = tr.units
	lens := tr.lengths()
	o := &zero.Options{Stage: c.stage, Micro: c.micro, Clip: c.clip}
	if c.Sparse.Experts > 0 { // mixed clips
		o.Clip = 0
	}
	if o.NormOver, err = tr.mesh.Join(ctx, "pp", "tp"); err != nil {
		return tr, err
	}
	o.NormOf = func(unit, param int) bool {
		u := tr.units[unit]
		if c.Tied && u == c.Layers+1 && param == 1 { // which counts as wte
			return false
		}
		return tr.mesh.Coord("tp") == 0 || tr.divided(u, param)
	}
	if tr.comms.over, err = tr.mesh.Join(ctx, "dp", "ep", "sp"); err != nil {
		return tr, err
	}
	if tr.comms.site, err = tr.mesh.Join(ctx, "dp", "ep", "pp", "sp", "tp"); err != nil {
		return tr, err
	}
	tr.observe(o, tr.comms.over)
	if c.held.dir != "" {
		if tr.adam.disk, err = offload.New(ctx, tr.comms.over, c.held.dir, &offload.Options{States: 2}); err != nil {
			return tr, err
		}
		o.Disk = tr.adam.disk
	}
	if tr.model, err = newStore(ctx, tr.comms.over, c, lens, o); err != nil {
		return tr, err
	}
	if c.Sparse.Experts > 0 {
		if err = withExperts(ctx, tr, *o); err != nil {
			return tr, err
		}
	}
	if tr.comms.sites, err = newSites(tr.mesh, tr.model, len(lens), c); err != nil {
		return tr, err
	}
	if err = tr.tie(ctx, lens); err != nil {
		return tr, err
	}
	for i := range tr.all {
		n := len(tr.model.Shard(i))
		if o.Disk != nil {
			n = 0
		}
		tr.adam.m, tr.adam.v = append(tr.adam.m, make([]float32, n)), append(tr.adam.v, make([]float32, n))
	}
	for d := range 2 {
		for s := range 2 {
			tr.in[d][s], tr.out[d][s] = make([]float32, tr.net.Len()), make([]float32, tr.net.Len())
		}
	}
	tr.pipe, err = pp.New(ctx, tr.mesh.Comm("pp"), nil)
	return tr, err
}

// begin gives the parameters the values that they have before the first step. It is collective.
func (tr *trainer) begin(ctx context.Context) error {
	c, lens := tr.cfg, tr.lengths()
	over := tr.comms.over
	for i, u := range tr.all {
		var full [][]float32
		var err error
		if u > c.Layers+1 {
			if full, err = tr.experts.begun(u-c.Layers-2, c.seed); err != nil {
				return err
			}
		} else if over.Rank() == 0 {
			if full, err = shard(c.Config, u, gpt.Init[float32](c.Config, u, c.seed), tr.split.Rank(), c.tp); err != nil {
				return err
			}
			if len(full) < len(lens[i]) { // the tied head of a pipeline
				full = append(full, gpt.Init[float32](c.Config, 0, c.seed)[0])
			}
		}
		if err = tr.model.Load(ctx, i, full, 0); err != nil {
			return err
		}
		clear(tr.adam.m[i])
		clear(tr.adam.v[i])
	}
	tr.mean[0] = 0
	if tr.experts != nil {
		clear(tr.experts.bias)
	}
	return nil
}

// divided reports whether tensor parallelism splits a parameter. Those of a block behind its router are experts'.
func (tr *trainer) divided(unit, param int) bool {
	return unit > 0 && unit <= tr.cfg.Layers && param != 0 && param != 3 && param != router(tr.cfg.Config)
}

// router is which parameter of a block is its router, and how many parameters the block has if there is none.
func router(c gpt.Config) int {
	if n := len(c.Names(1)); c.Sparse.Experts == 0 {
		return n
	} else {
		return n - 1
	}
}

// shard is a rank's part of a unit's whole parameters.
func shard(c gpt.Config, unit int, p [][]float32, rank, n int) ([][]float32, error) {
	if n == 1 || unit == 0 || unit == c.Layers+1 {
		return p, nil
	}
	for j, l := range layouts(c.Width) {
		if j >= router(c) { // the block has no MLP
			continue
		}
		var err error
		if p[j], err = tp.Shard(l, p[j], rank, n); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// layouts are how tensor parallelism splits the parameters of a block of width w, and the last two of them each expert.
func layouts(w int) map[int]tp.Layout {
	return map[int]tp.Layout{1: {Rows: w, Cols: 3 * w, Blocks: 3}, 2: {Rows: w, Cols: w, ByRows: true},
		4: {Rows: w, Cols: 4 * w}, 5: {Rows: 4 * w, Cols: w, ByRows: true}}
}

func (tr *trainer) close() error {
	var err error
	if tr.pipe != nil {
		err = tr.pipe.Close()
	}
	err = errors.Join(err, tr.comms.sites.close())
	if tr.model != nil {
		err = errors.Join(err, tr.model.Close())
	}
	err = errors.Join(err, tr.adam.disk.Close())
	if tr.head.ends != nil {
		err = errors.Join(err, tr.head.ends.Close())
	}
	if tr.mesh != nil {
		err = errors.Join(err, tr.mesh.Close())
	}
	return err
}

// In and Out are the buffers of the pipeline.
func (tr *trainer) In(s pp.Step) ccl.Buf  { return ccl.BufOf(tr.in[way(s)][s.In]) }
func (tr *trainer) Out(s pp.Step) ccl.Buf { return ccl.BufOf(tr.out[way(s)][s.Out]) }

func way(s pp.Step) int {
	if s.Backward {
		return 1
	}
	return 0
}

// Run computes one step of the pipeline.
func (tr *trainer) Run(ctx context.Context, s pp.Step) error {
	tr.split.ctx = ctx
	start := time.Now()
	if s.Backward {
		defer func() { tr.dtb += time.Since(start) }()
		if tr.validate {
			tr.net.Forget(s.Micro)
			return nil
		}
		return tr.backward(ctx, s)
	}
	defer func() { tr.dtf += time.Since(start) }()
	x := tr.out[0][s.Out]
	if tr.units[0] != 0 {
		copy(x, tr.in[0][s.In])
	}
	for i, u := range tr.units {
		began := time.Now()
		p, done, err := tr.params(ctx, i)
		if err != nil {
			return err
		}
		l, err := tr.net.Forward(u, p, s.Micro, x, tr.tokens[s.Micro], tr.targets[s.Micro])
		if err != nil {
			return err
		}
		tr.loss += l
		done()
		tr.line.Add("forward", unitName(u, tr.cfg.Layers), began)
	}
	return nil
}

func (tr *trainer) backward(ctx context.Context, s pp.Step) error {
	dx := tr.out[1][s.Out]
	if tr.units[len(tr.units)-1] != tr.cfg.Layers+1 {
		copy(dx, tr.in[1][s.In])
	}
	last := s.Micro == tr.cfg.micro-1
	for i := len(tr.units) - 1; i >= 0; i-- {
		u, began := tr.units[i], time.Now()
		p, done, err := tr.params(ctx, i)
		if err != nil {
			return err
		}
		g, held := tr.head.held, tr.head.held != nil && i == tr.head.end
		if !held {
			if g, err = tr.model.Grads(ctx, i); err != nil {
				return err
			}
		}
		into := g
		if tr.head.tied != nil && u == tr.cfg.Layers+1 {
			into = append(g[:1:1], tr.head.tied)
		}
		if err := tr.net.Backward(u, p, into, s.Micro, dx, tr.tokens[s.Micro], tr.targets[s.Micro]); err != nil {
			return err
		}
		done()
		tr.line.Add("backward", unitName(u, tr.cfg.Layers), began)
		if held { // until the other end's are there
			continue
		}
		if tr.head.tied != nil && u == 0 {
			mat.Add(g[0], tr.head.tied)
			clear(tr.head.tied)
		}
		// Stages 2 and 3 reduce each micro batch, and a store in bfloat16 hands over each.
		if err := tr.reduce(ctx, i, g, last || tr.cfg.stage >= 2 || tr.cfg.held.bf16); err != nil {
			return err
		}
	}
	return nil
}

// reduce starts averaging the gradients g of a unit; those that the ranks of tp have made with their own tokens, or
// of their parts of the experts, are summed before, if this is the time for it.
func (tr *trainer) reduce(ctx context.Context, i int, g [][]float32, whole bool) error {
	if whole {
		var own [][]float32
		for j := range g {
			if !tr.divided(tr.units[i], j) {
				own = append(own, g[j])
			}
		}
		if err := tp.SumGrads(ctx, tr.split.g, own...); err != nil {
			return err
		}
		if k := router(tr.cfg.Config); k < len(g) && tr.cfg.tp > 1 && !tr.split.Sequence() { // else it is among those
			if _, err := tp.EnterGrad(ctx, tr.split.g, nil, g[k]); err != nil {
				return err
			}
		}
		tr.ownGrads(i, g)
	}
	return tr.model.Reduce(i)
}

// times are what a step took.
type times struct{ dt, dtf, dtb, dto, dtc, dtx time.Duration }

// step trains on one batch, and returns its mean loss, the same on all ranks.
func (tr *trainer) step(ctx context.Context, step int) (loss float64, t times, err error) {
	c := tr.cfg
	start := time.Now()
	tr.feed(func(lo, hi int) (in, out []int32) { return tr.text.batch(c.seed, step, c.rows, lo, hi, c.Context) })
	if loss, err = tr.pass(ctx); err != nil {
		return 0, t, err
	}
	t.dtf, t.dtb = tr.dtf, tr.dtb
	if err = tr.joinEnds(ctx); err != nil {
		return 0, t, err
	}
	began := time.Now()
	lr := optim.Cosine(step, c.warmup, c.steps, c.lr, c.lr/10)
	var h [2]mat.AdamW
	for i, decay := range []float64{0, .1} {
		f, _ := optim.AdamW{LR: lr, Beta2: .95, Decay: decay}.Factors(step) // nothing is wrong with these: steps count from 1
		h[i] = mat.AdamW(f)
	}
	err = tr.model.Step(ctx, func(p zero.Piece, w, g []float32) error {
		k := 0
		if u := tr.all[p.Unit]; u > c.Layers+1 || c.Decays(u, p.Param) {
			k = 1
		}
		tr.averaged(p, g)
		m, v := tr.adam.of(p, len(w))
		h[k].Apply(w, g, m, v)
		return nil
	})
	if err == nil {
		err = tr.comms.sites.step(ctx)
	}
	var took times
	if err == nil {
		took, err = tr.experts.step(ctx, tr.world, tr.mesh.Coord("ep")+tr.mesh.Coord("tp") == 0)
	}
	s, x := tr.model.Stats(), tr.split.g.Stats()
	t.dto, t.dt = time.Since(began), time.Since(start)
	tr.line.Add("step", "update", began)
	tr.line.Add("step", fmt.Sprintf("step %d", step), start)
	t.dtc, t.dtx = s.Comm+x.Time+took.dtc, s.Exposed+x.Time+took.dtx
	if err == nil {
		tr.mean[0] = loss
	}
	return loss, t, err
}

// feed takes this rank's part of the rows of a step as micro batches: rows has rows lo to hi of them.
func (tr *trainer) feed(rows func(lo, hi int) (in, out []int32)) {
	c := tr.cfg
	per := c.rows / c.dp / c.micro
	tr.tokens, tr.targets = tr.tokens[:0], tr.targets[:0]
	for k := range c.micro {
		replica := tr.mesh.Coord("dp")*c.experts.ranks + tr.mesh.Coord("ep")
		at := ((tr.mesh.Coord("site")*c.dp/c.apart.sites+replica)*c.micro + k) * per
		in, out := rows(at, at+per)
		tr.tokens, tr.targets = append(tr.tokens, tr.part(in)), append(tr.targets, tr.part(out))
	}
}

// pass runs the micro batches through the pipeline, and returns the mean loss of the site's ranks,
// or of all if they validate.
func (tr *trainer) pass(ctx context.Context) (float64, error) {
	tr.loss, tr.dtf, tr.dtb = 0, 0, 0
	schedule := pp.Schedule(pp.OneFOneB)
	if tr.cfg.schedule == "gpipe" {
		schedule = pp.GPipe
	}
	s, err := tr.pipe.Run(ctx, schedule, len(tr.tokens), tr)
	if err != nil {
		return 0, err
	}
	tr.bubble = s.Bubble()
	over, replicas := tr.comms.site, tr.cfg.dp/tr.cfg.apart.sites
	if tr.validate {
		over, replicas = tr.world, tr.cfg.dp
	}
	sum := []float64{tr.loss / float64(len(tr.tokens)) / float64(replicas*tr.cfg.tp*tr.cfg.across)}
	err = ccl.AllReduce(ctx, over, sum, sum, ccl.Sum)
	return sum[0], err
}

// eval is the mean loss on data that is not trained on.
func (tr *trainer) eval(ctx context.Context) (loss float64, err error) {
	tr.feed(func(lo, hi int) (in, out []int32) { return tr.text.unseen(tr.cfg.rows, lo, hi, tr.cfg.Context) })
	tr.validate = true
	defer func() { tr.validate = false }()
	failed := tr.comms.sites.within(ctx, func() { loss, err = tr.pass(ctx) })
	return loss, cmp.Or(err, failed)
}
