package pp

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/mesh"
)

// Ends are the first and the last stage of a pipeline that share a parameter, as the embedding of
// tokens and the head of a language model do: Megatron's embedding group. Each end has a copy. The
// ends begin with the same bits, add up their gradients in each step, and make the same update, so
// that the copies stay the same bits.
//
//	ends, err := pp.NewEnds(ctx, line)             // all stages
//	err = pp.Begin(ctx, ends, wte)                 // the first stage's, once
//	...
//	err = pp.SumEnds(ctx, ends, dwte)              // after the last micro batch, before gradients are averaged over dp
//
// On the other stages, and where one stage is both ends, Begin and SumEnds do nothing. The
// parameter counts once in the norm of all gradients: zero's NormOf leaves it out where
// [Ends.Owner] is false.
type Ends struct {
	c     *ccl.Comm // of both; nil on stages between, and where there is one
	stage int
	untie func()
}

// NewEnds makes the Ends of a pipeline whose stages are the ranks of line. It is collective over
// them. The Ends fail with line, and line with them.
func NewEnds(ctx context.Context, line *ccl.Comm) (*Ends, error) {
	if line == nil {
		return nil, errors.New("pp: NewEnds: the Comm is nil")
	}
	e := &Ends{stage: line.Rank(), untie: func() {}}
	if line.Size() == 1 {
		return e, nil
	}
	color := -1
	if e.stage == 0 || e.stage == line.Size()-1 {
		color = 0
	}
	c, err := line.Split(ctx, color, line.Rank())
	if err != nil {
		return nil, fmt.Errorf("pp: NewEnds: %w", err)
	}
	if color == 0 {
		c.SetName("ends of " + line.Name())
		e.c, e.untie = c, mesh.Tie(c, line)
	}
	return e, nil
}

// Has reports whether this stage is an end: it has a copy of what is tied, if there are two.
func (e *Ends) Has() bool { return e != nil && e.c != nil }

// Owner reports whether this is the end at which what is tied counts, in the norm of gradients and
// the number of parameters: the first stage.
func (e *Ends) Owner() bool { return e.usable("Owner") == nil && e.stage == 0 }

// usable says what keeps e from being used in a call of that name.
func (e *Ends) usable(what string) error {
	if e == nil || e.untie == nil {
		return fmt.Errorf("pp: %s: the Ends are nil, or not those of NewEnds", what)
	}
	return nil
}

// Begin gives the last stage the first one's parameter.
func Begin[T ccl.Number](ctx context.Context, e *Ends, w []T) error {
	if err := e.usable("Begin"); err != nil || e.c == nil {
		return err
	}
	if err := ccl.Broadcast(ctx, e.c, w, 0); err != nil {
		return fmt.Errorf("pp: the parameter that both ends have: %w", err)
	}
	return nil
}

// SumEnds adds up the gradients that both ends have for the parameter, in order of the stages, in place on both.
func SumEnds[T ccl.Number](ctx context.Context, e *Ends, g []T) error {
	if err := e.usable("SumEnds"); err != nil || e.c == nil {
		return err
	}
	if err := ccl.AllReduce(ctx, e.c, g, g, ccl.Sum); err != nil {
		return fmt.Errorf("pp: the gradient of the parameter that both ends have: %w", err)
	}
	return nil
}

// Close closes the Comm of the ends, if there are any. It is not collective.
func (e *Ends) Close() error {
	if e.usable("Close") != nil {
		return nil
	}
	e.untie()
	return e.c.Close()
}
