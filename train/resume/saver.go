// Package resume keeps a run going: it writes checkpoints beside the steps and removes old ones, and
// finds the ranks that are left when one is lost.
package resume

import (
	"context"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
)

// Saver makes the checkpoints of a run in a directory, and removes old ones.
type Saver struct {
	*ckpt.Saver
	// Saved is the step of the last one, under way or whole; -1: none.
	Saved int
	world *ccl.Comm
	dir   string
	keep  int
}

// NewSaver returns one that keeps so many checkpoints. It is collective.
func NewSaver(ctx context.Context, world *ccl.Comm, dir string, keep int) (*Saver, error) {
	s, err := ckpt.NewSaver(ctx, world)
	return &Saver{s, -1, world, dir, keep}, err
}

// Begin copies the state of a step, once the checkpoint before is whole, and has it written while training goes on.
func (s *Saver) Begin(ctx context.Context, step int,
	state func() (progress any, tensors []ckpt.Tensor, err error)) error {
	if step <= s.Saved {
		return nil
	}
	if err := s.Finish(ctx); err != nil {
		return err
	}
	progress, tensors, err := state()
	if err != nil {
		return err
	}
	if err := s.Save(ctx, ckpt.Step(s.dir, step), progress, tensors); err != nil {
		return err
	}
	s.Saved = step
	return nil
}

// Finish waits for the checkpoint under way, and removes old ones.
func (s *Saver) Finish(ctx context.Context) error {
	if err := s.Wait(ctx); err != nil || s.Saved < 0 {
		return err
	}
	return ckpt.Keep(ctx, s.world, s.dir, s.keep)
}
