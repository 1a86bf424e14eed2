package fit

import (
	"context"

	"github.com/goccl/goccl/train/fit/internal/gen"
	"github.com/goccl/goccl/train/fit/sample"
)

// GenerateOptions say how prompts are continued.
type GenerateOptions struct {
	// Tokens is how many are added at most.
	Tokens int
	// Sample chooses them; its zero value takes the likeliest.
	Sample sample.Options
	// Seed is that of the choices. Each row has a generator of its own.
	Seed uint64
	// Stop are tokens that end a row, and are its last.
	Stop []int32
	// NoCache computes all tokens again for each one.
	NoCache bool
}

// Generate continues prompts, which may have any lengths, at the same time. All ranks call it, with prompts of their
// own: at stage 3 parameters are gathered once, and a rank then needs no other. The lengths of prompts and
// rows are rounded up, so that few programs are compiled.
func (t *Trainer) Generate(ctx context.Context, prompts [][]int32, o *GenerateOptions) ([][]int32, error) {
	rows, err := gen.Generate(ctx, t.u, prompts, gen.Options(*o))
	return rows, t.fail(err)
}
