package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl"
)

// some makes one of the steps that any Comm takes.
func (s *scene) some() error {
	kind := kind(s.rnd.IntN(int(failing)))
	if s.depth >= 2 && kind >= parts {
		kind = blocking
	}
	return s.make(kind)
}

func (s *scene) make(k kind) error {
	switch k {
	case blocking:
		return s.blocking()
	case queued:
		return s.queued()
	case messages:
		return s.messages()
	case values:
		if err := s.values(); err != nil {
			return err
		}
		return s.barrier()
	case refused:
		return s.refused()
	case parts:
		if s.rnd.IntN(3) == 0 {
			return s.subset()
		}
		return s.parts()
	case several:
		return s.several()
	case unread:
		return s.unread()
	case waitsRound:
		return s.fail(circle)
	}
	return s.failing()
}

// parts splits the Comm, and makes steps on the part.
func (s *scene) parts() error {
	n, me := s.c.Size(), s.c.Rank()
	colors, keys := make([]int, n), make([]int, n)
	for r := range n {
		colors[r], keys[r] = s.rnd.IntN(4)-1, s.rnd.IntN(4)
	}
	members := []int{}
	for r := range n {
		if colors[r] == colors[me] {
			members = append(members, r)
		}
	}
	id := s.rnd.Uint64()
	slices.SortStableFunc(members, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	c, err := s.c.Split(s.ctx, colors[me], keys[me])
	if err != nil {
		return fmt.Errorf("step %d: Split: %w", s.step, err)
	}
	if colors[me] < 0 {
		if c.Size() != 0 || c.Rank() != -1 {
			return s.wrongf("Split with a negative color gave %v", c)
		}
		return nil
	}
	return s.on(c, members, mix(id, uint64(colors[me])))
}

// on makes steps on a Comm whose ranks are these of the scene's, and closes it. It draws nothing from the scene's numbers: not all
// of the scene's ranks come here.
func (s *scene) on(c *ccl.Comm, members []int, id uint64) error {
	if c.Size() != len(members) || c.Rank() != slices.Index(members, s.c.Rank()) {
		return s.wrongf("rank %d got %v, of %v", s.c.Rank(), c, members)
	}
	inner := s.r.newScene(s.ctx, c, s.seatsOf(members), s.step, s.depth+1, id)
	inner.arena = s.arena
	var err error
	for range 1 + inner.rnd.IntN(3) {
		if err = inner.some(); err != nil {
			c.Abort(err)
			break
		}
	}
	if e := c.Close(); err == nil && e != nil {
		err = s.wrongf("Close of %v: %v", c, e)
	}
	return err
}

// seatsOf are those of some ranks of the Comm.
func (s *scene) seatsOf(ranks []int) (seats []int) {
	for _, r := range ranks {
		seats = append(seats, s.seats[r])
	}
	return seats
}

// subset makes a Comm of some ranks, which they alone call; now and then after an attempt that one of them gives up.
func (s *scene) subset() error {
	n := s.c.Size()
	members, tag := s.rnd.Perm(n)[:1+s.rnd.IntN(n)], s.rnd.IntN(5)
	quits, id := s.rnd.IntN(4*len(members)), s.rnd.Uint64()
	if !slices.Contains(members, s.c.Rank()) {
		return nil
	}
	// A rank whose context ends has taken part or not; the others hear of it, or meet it as it comes again. One that comes again may
	// hear of an attempt before, and then give up as well. In the end all have the Comm.
	var c *ccl.Comm
	for try := 0; c == nil; try++ {
		ctx, cancel := context.WithCancel(s.ctx)
		if try == 0 && len(members) > 1 && quits < len(members) && s.c.Rank() == members[quits] {
			time.AfterFunc(time.Duration(s.own.IntN(3000))*time.Microsecond, cancel)
		}
		var err error
		c, err = ccl.Subset(ctx, s.c, members, tag)
		cancel()
		var e *ccl.Error
		if err != nil && (try > 2*len(members) || quits >= len(members) || !errors.As(err, &e) || e.Code != ccl.ErrCanceled || s.ctx.Err() != nil) {
			return fmt.Errorf("step %d: Subset of %v with tag %d, try %d: %w", s.step, members, tag, try, err)
		}
	}
	return s.on(c, members, id)
}

// several uses some Comms of all ranks at once, each on a goroutine of its own, and the Comm that they came from beside them.
func (s *scene) several() error {
	n := s.c.Size()
	scenes := []*scene{s.r.newScene(s.ctx, s.c, s.seats, s.step, 2, s.rnd.Uint64())}
	for range 1 + s.rnd.IntN(2) {
		members := s.rnd.Perm(n)
		c, err := s.c.Split(s.ctx, 0, slices.Index(members, s.c.Rank()))
		if err != nil {
			for _, inner := range scenes[1:] {
				inner.c.Close()
			}
			return fmt.Errorf("step %d: Split: %w", s.step, err)
		}
		scenes = append(scenes, s.r.newScene(s.ctx, c, s.seatsOf(members), s.step, 2, s.rnd.Uint64()))
	}
	errs := make([]error, len(scenes))
	var all sync.WaitGroup
	for i, inner := range scenes {
		all.Go(func() {
			for range 1 + inner.rnd.IntN(3) {
				if errs[i] = inner.some(); errs[i] != nil {
					inner.c.Abort(errs[i])
					break
				}
			}
			if inner.c == s.c {
				return
			}
			if err := inner.c.Close(); err != nil && errs[i] == nil {
				errs[i] = s.wrongf("Close of %v: %v", inner.c, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
