package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/goccl/goccl/internal/files"
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
		for i := 0; i+1 < len(raw); i += 2 {
			s.tokens = append(s.tokens, binary.LittleEndian.Uint16(raw[i:]))
		}
	} else {
		for _, b := range raw {
			s.tokens = append(s.tokens, uint16(b))
		}
	}
	if len(s.tokens) < c.context+2 {
		return nil, fmt.Errorf("%s has %d tokens: a row takes %d", c.data, len(s.tokens), c.context+1)
	}
	for i, t := range s.tokens {
		if int(t) >= c.vocab {
			return nil, fmt.Errorf("%s: token %d is %d, but -vocab is %d", c.data, i, t, c.vocab)
		}
	}
	return s, nil
}

// row appends a row of a step.
func (s *source) row(list []int32, step, row int) []int32 {
	rnd := rand.New(rand.NewPCG(s.c.seed+uint64(step), uint64(row)))
	if n := len(s.tokens); n > 0 {
		at := rnd.IntN(n - s.c.context)
		for _, t := range s.tokens[at : at+s.c.context+1] {
			list = append(list, int32(t))
		}
		return list
	}
	// Each token follows from the one before, nine times out of ten: something to learn.
	v := uint32(min(s.c.vocab, 1000))
	x := rnd.Uint32N(v)
	for range s.c.context + 1 {
		list = append(list, int32(x))
		if rnd.Uint32N(10) == 0 {
			x = rnd.Uint32N(v)
		} else {
			x = (x*31 + 7) % v
		}
	}
	return list
}

// batch is the rows of a micro batch of a rank at a step.
func (s *source) batch(step, rank, micro int) (list []int32) {
	n := s.c.batch()
	first := (rank*s.c.micro + micro) * n
	for r := range n {
		list = s.row(list, step, first+r)
	}
	return list
}

// initial is the first values of a parameter.
func initial(c *config, i int) []float32 {
	p := c.params()[i]
	rnd := rand.New(rand.NewPCG(c.seed, uint64(i)))
	x := make([]float32, p.size())
	for k := range x {
		if p.bias {
			break
		}
		if x[k] = 1; p.std > 0 {
			x[k] = float32(rnd.NormFloat64() * p.std)
		}
	}
	return x
}
