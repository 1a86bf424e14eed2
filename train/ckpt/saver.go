package ckpt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// A Saver saves in the background, on a Comm of its own: its Save returns once the data have been
// copied, and training goes on while they are written. It holds one copy of what it saves. What is
// Stored is not copied: with some of that on any rank, Save waits there for the end. On Linux
// it writes past the page cache, which takes less of the processors, where the file system can.
type Saver struct {
	of     *ccl.Comm          // the training's
	c      *ccl.Comm          // its own
	cancel context.CancelFunc // of the Save under way
	ctx    context.Context
	done   chan error // gets its error when it has ended; nil before the first
	copies []Tensor
	to     func(ctx context.Context, dir string) (d target, cleaned string)
}

// NewSaver makes a Saver of the ranks of c, which all call it. When c fails, a Save under way ends.
func NewSaver(ctx context.Context, c *ccl.Comm) (*Saver, error) {
	return newSaver(ctx, c, func(ctx context.Context, dir string) (target, string) {
		return &disk{direct: true, ctx: ctx}, filepath.Clean(dir)
	})
}

func newSaver(ctx context.Context, c *ccl.Comm, to func(context.Context, string) (target, string)) (*Saver, error) {
	if c == nil {
		return nil, errors.New("ckpt: NewSaver: the Comm is nil")
	}
	own, err := c.SplitWith(ctx, 0, c.Rank(), func(o *ccl.Options) { o.Name = "ckpt" })
	if err != nil {
		return nil, fmt.Errorf("ckpt: NewSaver: %w", err)
	}
	s := &Saver{of: c, c: own, to: to}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go func() {
		select {
		case <-c.Done():
			own.Abort(c.Err())
		case <-s.ctx.Done():
		}
	}()
	return s, nil
}

// Save begins what the function Save does, once the Save before has ended; if that failed it returns its error, on all
// ranks, and begins nothing. ts and state may change when it has returned.
func (s *Saver) Save(ctx context.Context, dir string, state any, ts []Tensor) error {
	if err := s.Wait(ctx); err != nil {
		return err
	}
	if s.ctx.Err() != nil {
		return errors.New("ckpt: Saver: it is closed")
	}
	d, dir := s.to(s.ctx, dir)
	state = frozen(state)
	s.copy(ts)
	s.done = make(chan error, 1)
	go func(done chan<- error) {
		var err error
		defer func() { done <- err }() // also where the goroutine ends within a call
		err = save(s.ctx, s.c, d, dir, state, s.copies)
	}(s.done)
	if slices.ContainsFunc(ts, func(t Tensor) bool { _, is := t.Data.(Stored); return is }) {
		select { // the program is to change that next
		case err := <-s.done:
			s.done <- err // for Wait
		case <-ctx.Done():
			s.cancel() // what is saved would change
			s.done <- <-s.done
		}
	}
	return nil
}

// copy takes the data of ts, into the memory of the last copy where that fits.
func (s *Saver) copy(ts []Tensor) {
	old := s.copies
	s.copies = slices.Clone(hosted(ts, old, true)) // what is of a device is copied by that
	for i := range s.copies {
		from := reflect.ValueOf(s.copies[i].Data)
		if from.Kind() != reflect.Slice || copied(ts[i].Data) {
			continue // or Save refuses it
		}
		if i < len(old) && fits(old[i].Data, s.copies[i].Data, from.Len()) {
			s.copies[i].Data = old[i].Data
		} else {
			s.copies[i].Data = reflect.MakeSlice(from.Type(), from.Len(), from.Len()).Interface()
		}
		reflect.Copy(reflect.ValueOf(s.copies[i].Data), from)
	}
}

// fits reports whether old is a slice of like's type with n elements.
func fits(old, like any, n int) bool {
	return old != nil && reflect.TypeOf(old) == reflect.TypeOf(like) && reflect.ValueOf(old).Len() == n
}

// copied reports whether data is memory of a device, of which hosted has made a copy.
func copied(data any) (onDevice bool) {
	if b, is := data.(ccl.Buf); is {
		_, onDevice = b.Addr()
	}
	return onDevice
}

// Wait waits for the Save under way, and returns the error of the last one, once: the next Save
// begins anew. If ctx ends first the Save goes on.
func (s *Saver) Wait(ctx context.Context) error {
	if s.done == nil {
		return nil
	}
	select {
	case err := <-s.done:
		s.done = nil
		return err
	case <-ctx.Done():
		return fmt.Errorf("ckpt: Saver: %w", ctx.Err())
	}
}

// Close waits for the Save under way and ends the Saver; its error is that of the last Save. If ctx
// ends first, so does the Save, on all ranks.
func (s *Saver) Close(ctx context.Context) error {
	if failed := s.of.Err(); failed != nil { // the others' Saves end for that reason, not because this rank leaves
		s.c.Abort(failed)
	}
	err := s.Wait(ctx)
	s.cancel()
	if s.done != nil {
		err = errors.Join(err, <-s.done)
		s.done = nil
	}
	return errors.Join(err, s.c.Close())
}
