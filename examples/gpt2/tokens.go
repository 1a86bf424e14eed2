package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/fit"
)

// source is where rows of tokens come from. A row depends on the step and its number alone, so any
// number of ranks trains on the same rows.
type source struct {
	c      *config
	tokens []uint16 // none: made up
}

// mostData is how many bytes the data may have.
const mostData = 1 << 36

func newSource(c *config) (*source, error) {
	s := &source{c: c}
	if c.data == "" {
		return s, nil
	}
	raw, err := files.Read(c.data, mostData)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(c.data, ".bin") {
		if len(raw)%2 == 1 {
			return nil, fmt.Errorf("%s has %d bytes: tokens have two each", c.data, len(raw))
		}
		for i := 0; i < len(raw); i += 2 {
			s.tokens = append(s.tokens, binary.LittleEndian.Uint16(raw[i:]))
		}
	} else {
		for _, b := range raw {
			s.tokens = append(s.tokens, uint16(b))
		}
	}
	if len(s.tokens) < c.model.Positions+2 {
		return nil, fmt.Errorf("%s has %d tokens: a row takes %d", c.data, len(s.tokens), c.model.Positions+1)
	}
	for i, t := range s.tokens {
		if int(t) >= c.model.Vocab {
			return nil, fmt.Errorf("%s: token %d is %d, but -vocab is %d", c.data, i, t, c.model.Vocab)
		}
	}
	return s, nil
}

// row appends a row of a step.
func (s *source) row(list []int32, step, row int) []int32 {
	rnd := rand.New(rand.NewPCG(s.c.Fit.Seed+uint64(step), uint64(row)))
	if n := len(s.tokens); n > 0 {
		at := rnd.IntN(n - s.c.model.Positions)
		for _, t := range s.tokens[at : at+s.c.model.Positions+1] {
			list = append(list, int32(t))
		}
		return list
	}
	// Each token follows from the one before, nine times out of ten: something to learn.
	v := uint32(min(s.c.model.Vocab, 1000))
	x := rnd.Uint32N(v)
	for range s.c.model.Positions + 1 {
		list = append(list, int32(x))
		if rnd.Uint32N(10) == 0 {
			x = rnd.Uint32N(v)
		} else {
			x = (x*31 + 7) % v
		}
	}
	return list
}

// batches are the micro batches of a rank at a step, cut into what goes in and what is wanted.
func (s *source) batches(step, rank int) ([]fit.Batch, error) {
	return s.c.Fit.Deal(rank, func(b *fit.Batch, row int) error {
		x := s.row(nil, step, row)
		b.Tokens, b.Wanted = append(b.Tokens, x[:len(x)-1]...), append(b.Wanted, x[1:]...)
		return nil
	})
}

// export writes the initial parameters, float32, and the tokens of all steps, int32, row after row:
// what another program needs to train the same.
func export(c *config, rows *source) error {
	f, err := files.Create(c.export)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i, p := range c.params() {
		if err := binary.Write(w, binary.LittleEndian, c.initial(i, p)); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	for step := 1; step <= c.Run.Steps; step++ {
		var list []int32
		for r := range c.Rows {
			list = rows.row(list, step, r)
		}
		if err := binary.Write(w, binary.LittleEndian, list); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(w.Flush(), f.Close())
}
