package disks

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/train/ckpt"
)

// Saver saves in the background, as a ckpt.Saver does. All disks have a checkpoint's index once Wait,
// or the next Save, has returned without an error.
type Saver struct {
	d      *Disks // with a Comm of its own, since a Save goes on beside the program's calls
	s      *ckpt.Saver
	to     *current
	ctx    context.Context
	cancel context.CancelFunc // of the Save under way
	done   chan error         // gets its error when it has ended; nil if there is none
}

// current is the Store of a Saver: the view of the Save under way.
type current struct{ *view }

// NewSaver makes a Saver. It is collective.
func (d *Disks) NewSaver(ctx context.Context) (*Saver, error) {
	own, err := New(ctx, d.of, d.local, &Options{Copies: d.copies})
	if err != nil {
		return nil, err
	}
	s := &Saver{d: own, to: &current{}}
	if s.s, err = (ckpt.Shelf{Store: s.to}).NewSaver(ctx, d.of); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Save begins what Save of the Disks does, once the Save before has ended; if that failed it returns
// its error, on all ranks, and begins nothing. ts and state may change when it has returned.
func (s *Saver) Save(ctx context.Context, name string, state any, ts []ckpt.Tensor) error {
	if err := s.Wait(ctx); err != nil {
		return err
	}
	what := "ckpt/disks: Save to " + name
	v, err := s.d.meet(ctx, what, around(name))
	if err != nil {
		return err
	}
	s.to.view = v
	if err := s.s.Save(ctx, name, state, ts); err != nil {
		return err
	}
	s.done = make(chan error, 1)
	go func(done chan<- error) {
		err := s.s.Wait(s.ctx)
		defer func() { done <- err }() // also where the goroutine ends within a call
		if s.ctx.Err() == nil {
			err = s.d.follow(s.ctx, what, v, err)
		}
	}(s.done)
	return nil
}

// Wait waits for the Save under way, which is whole only then, and returns its error, once. If ctx
// ends first the Save goes on.
func (s *Saver) Wait(ctx context.Context) error {
	if s.done == nil {
		return nil
	}
	select {
	case err := <-s.done:
		s.done = nil
		return err
	case <-ctx.Done():
		return fmt.Errorf("ckpt/disks: Saver: %w", ctx.Err())
	}
}

// Close waits for the Save under way and ends the Saver; its error is that of the last Save. If ctx
// ends first, so does the Save, on all ranks.
func (s *Saver) Close(ctx context.Context) error {
	err := s.Wait(ctx)
	s.cancel()
	if s.done != nil {
		<-s.done
	}
	return errors.Join(err, s.s.Close(ctx), s.d.Close())
}
