package disks

import (
	"context"
	"errors"

	"github.com/goccl/goccl/train/ckpt"
)

// Saver saves in the background, as a ckpt.Saver does. All disks have a checkpoint's index once Wait,
// or the next Save, has returned without an error.
type Saver struct {
	d     *Disks
	s     *ckpt.Saver
	to    *current
	what  string
	under bool // whether a Save is under way, whose view is in to
}

// current is the Store of a Saver: the view of the Save under way.
type current struct{ *view }

// NewSaver makes a Saver. It is collective.
func (d *Disks) NewSaver(ctx context.Context) (*Saver, error) {
	to := &current{}
	s, err := ckpt.Shelf{Store: to}.NewSaver(ctx, d.of)
	if err != nil {
		return nil, err
	}
	return &Saver{d: d, s: s, to: to}, nil
}

// Save begins what Save of the Disks does, once the Save before has ended; if that failed it returns
// its error, on all ranks, and begins nothing. ts and state may change when it has returned.
func (s *Saver) Save(ctx context.Context, name string, state any, ts []ckpt.Tensor) (err error) {
	if err := s.Wait(ctx); err != nil {
		return err
	}
	s.what = "ckpt/disks: Save to " + name
	if s.to.view, err = s.d.meet(ctx, s.what, around(name)); err != nil {
		return err
	}
	err = s.s.Save(ctx, name, state, ts)
	s.under = err == nil
	return err
}

// Wait waits for the Save under way, which is whole only then, and returns its error, once. If ctx
// ends first the Save goes on. It is collective.
func (s *Saver) Wait(ctx context.Context) error {
	if !s.under {
		return nil
	}
	err := s.s.Wait(ctx)
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return err
	}
	s.under = false
	return s.d.follow(ctx, s.what, s.to.view, err)
}

// Close waits for the Save under way and ends the Saver; its error is that of the last Save. If ctx
// ends first, so does the Save, on all ranks.
func (s *Saver) Close(ctx context.Context) error {
	return errors.Join(s.Wait(ctx), s.s.Close(ctx))
}
