package main

import (
	"context"

	"github.com/goccl/goccl/train/pp"
)

// lengths are those of the parameters of this rank's units. A tied head that is not on the
// embedding's rank has a copy of wte.
func (tr *trainer) lengths() (lens [][]int) {
	c := tr.cfg
	all := c.Units(c.tp)
	for _, u := range tr.units {
		l := all[u]
		if c.Tied && c.pp > 1 && u == c.Layers+1 {
			l = append(l[:1:1], c.Vocab*c.Width)
		}
		lens = append(lens, l)
	}
	return lens
}

// tie prepares for a tied embedding. It is collective.
func (tr *trainer) tie(ctx context.Context, lens [][]int) (err error) {
	c := tr.cfg
	if !c.Tied {
		return nil
	}
	if c.pp == 1 {
		tr.head.tied = make([]float32, c.Vocab*c.Width)
		return nil
	}
	if tr.head.ends, err = pp.NewEnds(ctx, tr.mesh.Comm("pp")); err != nil || !tr.head.ends.Has() {
		return err
	}
	if !tr.head.ends.Owner() {
		tr.head.end, tr.head.wte = len(tr.units)-1, 1
	}
	tr.head.held = views(make([]float32, sum(lens[tr.head.end])), lens[tr.head.end])
	return nil
}

// params are the parameters of this rank's unit i; a tied head on the embedding's rank has wte
// behind them. done releases what is used.
func (tr *trainer) params(ctx context.Context, i int) (all [][]float32, done func(), err error) {
	p, err := tr.model.Params(ctx, i)
	if err != nil {
		return nil, nil, err
	}
	if tr.head.tied == nil || tr.units[i] != tr.cfg.Layers+1 {
		return p, func() { tr.model.Release(i) }, nil
	}
	wte, err := tr.model.Params(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	return append(p[:1:1], wte[0]), func() { tr.model.Release(0); tr.model.Release(i) }, nil
}

// joinEnds adds up the gradients of a tied wte of both ends of the pipeline, so that both make the same step.
func (tr *trainer) joinEnds(ctx context.Context) error {
	if tr.head.held == nil {
		return nil
	}
	if err := pp.SumEnds(ctx, tr.head.ends, tr.head.held[tr.head.wte]); err != nil {
		return err
	}
	for k := range tr.cfg.micro { // the store expects each
		g, err := tr.model.Grads(ctx, tr.head.end)
		if err != nil {
			return err
		}
		last := k == tr.cfg.micro-1
		if last {
			for j := range g {
				copy(g[j], tr.head.held[j])
				clear(tr.head.held[j])
			}
		}
		if err := tr.reduce(ctx, tr.head.end, g, last); err != nil {
			return err
		}
	}
	return nil
}

// spread gives attention its exchanges, where sequences are split over ranks: of the heads that this rank of tp has.
func (tr *trainer) spread() {
	c, comm := tr.cfg, tr.mesh.Comm("sp")
	own := c.Config
	own.Heads, own.Width = own.Heads/c.tp, own.Width/c.tp
	s := sequences{tr.split, comm, own, c.rows / c.dp / c.micro}
	switch {
	case c.across == 1:
	case c.sp == "ulysses":
		tr.net.Across(comm.Rank(), c.across, &ulysses{s, tr.net})
	default:
		tr.net.Across(comm.Rank(), c.across, &ring{s})
	}
}

// part is what this rank has of the tokens of rows.
func (tr *trainer) part(x []int32) []int32 {
	c := tr.cfg
	if c.across == 1 {
		return x
	}
	n := c.Context / c.across
	out := make([]int32, 0, len(x)/c.across)
	for at := tr.mesh.Coord("sp") * n; at < len(x); at += c.Context {
		out = append(out, x[at:at+n]...)
	}
	return out
}
