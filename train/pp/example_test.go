package pp_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/pp"
)

// A model of two stages: the first doubles a number, the second adds 1 and sends back a gradient of 1.
type line struct {
	first         bool
	in, out, back [2][]float32
	acts, grads   []float32
}

func (l *line) In(s pp.Step) ccl.Buf {
	if s.Backward {
		return ccl.BufOf(l.back[s.In])
	}
	return ccl.BufOf(l.in[s.In])
}

func (l *line) Out(s pp.Step) ccl.Buf {
	if s.Backward {
		return ccl.BufOf(l.back[s.Out])
	}
	return ccl.BufOf(l.out[s.Out])
}

func (l *line) Run(_ context.Context, s pp.Step) error {
	switch {
	case l.first && !s.Backward:
		l.out[s.Out][0] = 2 * float32(s.Micro)
	case l.first:
		l.grads = append(l.grads, 2*l.back[s.In][0])
	case !s.Backward:
		l.acts = append(l.acts, l.in[s.In][0]+1)
	default:
		l.back[s.Out][0] = 1
	}
	return nil
}

func Example() {
	ctx := context.Background()
	stages := [2]*line{}
	ccltest.Example(2, func(c *ccl.Comm) error {
		p, err := pp.New(ctx, c, nil)
		if err != nil {
			return err
		}
		l := &line{first: c.Rank() == 0}
		for k := range 2 {
			l.in[k], l.out[k], l.back[k] = make([]float32, 1), make([]float32, 1), make([]float32, 1)
		}
		if _, err := p.Run(ctx, pp.OneFOneB, 3, l); err != nil {
			return err
		}
		stages[c.Rank()] = l
		ccl.Barrier(ctx, c) // nobody closes before all have come
		p.Close()
		return nil
	})
	fmt.Println(stages[1].acts, stages[0].grads)
	// Output: [1 3 5] [2 2 2]
}
