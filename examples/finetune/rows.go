package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/data/pack"
	"github.com/goccl/goccl/train/data/text"
	"github.com/goccl/goccl/train/fit"
)

// source is rows of a file, in an order that depends on the step alone.
type source struct {
	t   *tuner
	f   *text.Files
	set *text.Set
	p   *pack.Packing
}

func (t *tuner) rowsOf(ctx context.Context, file string) (*source, error) {
	encode, err := t.encoder()
	if err != nil {
		return nil, alone(t.world, err)
	}
	f, err := text.Open(text.Lines, file)
	if err != nil {
		return nil, alone(t.world, err)
	}
	set, err := text.New(ctx, t.world, f, text.Below(t.of.Words(), encode))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("-kind %s wants lines of %s: %w", t.c.kind, kinds[t.c.kind], err), f.Close())
	}
	p, err := pack.Single(set.Lengths, t.c.context)
	if err == nil && p.Rows() == 0 {
		err = fmt.Errorf("%s has no row to train on", file)
	}
	if err != nil { // on all ranks
		return nil, errors.Join(err, f.Close())
	}
	return &source{t, f, set, p}, nil
}

// cut returns how many documents have more than a row.
func (s *source) cut() (n int) {
	for _, tokens := range s.set.Lengths {
		if tokens > s.t.c.context+1 {
			n++
		}
	}
	return n
}

// fill appends a row, or one that does not count.
func (s *source) fill(b *fit.Batch, row int) error {
	var r pack.Row
	if row >= s.p.Rows() {
		for range s.t.c.context {
			b.Tokens, b.Wanted = append(b.Tokens, 0), append(b.Wanted, pack.Ignored)
		}
		return nil
	}
	err := s.set.Fill(s.p, row, &r)
	b.Tokens, b.Wanted = append(b.Tokens, r.Tokens...), append(b.Wanted, r.Targets...)
	return err
}

// batches are this rank's micro batches of a step: rows follow one another, epoch by epoch,
// whatever the number of ranks.
func (s *source) batches(step int) ([]fit.Batch, error) {
	t := s.t
	return t.c.Fit.Deal(t.world.Rank(), func(b *fit.Batch, row int) error {
		at := (step-1)*t.c.Rows + row
		epoch, k := at/s.p.Rows(), at%s.p.Rows()
		order, err := data.Sampler{N: s.p.Rows(), Rank: 0, Size: 1, Seed: t.c.Fit.Seed}.Epoch(epoch, k)
		if err != nil {
			return err
		}
		for _, row := range order {
			return s.fill(b, row)
		}
		return nil
	})
}

// all are this rank's part of all rows, in as many batches as the other ranks have.
func (s *source) all() (list []fit.Batch) {
	t := s.t
	each := t.c.Fit.Rows
	for at := 0; at < s.p.Rows(); at += each * t.world.Size() {
		var b fit.Batch
		for i := range each {
			if err := s.fill(&b, at+t.world.Rank()*each+i); err != nil {
				t.world.Abort(err)
			}
		}
		list = append(list, b)
	}
	return list
}
