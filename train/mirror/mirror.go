// Package mirror keeps the state of each rank in the memory of another one, so that a job goes on
// after a loss without a checkpoint. It is what Gemini (Wang et al. 2023) does with host memory.
//
// A Mirror belongs to a rank. Save copies the rank's state, every so many steps, and sends the copy
// to the rank's holder, in the background and on a Comm of its own. The holder is on the next host
// where there are several. After a loss the ranks get a Comm with the same size and the same
// numbers, in which a spare has the number of the lost rank, and all call Restore: it gives every
// rank the state of the last step that all of them have, bit for bit. The run continues with the
// next step, and has the losses that it would have had.
//
// Restore is also how a job begins, so one loop serves workers and spares:
//
//	m := mirror.New(nil)
//	defer m.Close()
//	for {
//		step, err := m.Restore(ctx, c, fresh, state...)
//		if err == nil {
//			err = train(ctx, c, m, step+1) // calls m.Save after each update
//		}
//		// if a rank was lost: get the next c, and go round again
//	}
//
// A rank keeps two generations of its own state and two of the state that it holds, so that one is
// whole at all times: a rank that is killed in the middle of a Save costs at most that step. With
// Adam in float32 and P parameters over n ranks that is 48 P/n bytes, and 12 P/n are sent in a Save.
//
// Where several ranks hold the same state anyway, as the replicas of ddp do, Options.Shard says so,
// and nothing is sent. Where all ranks hold the same, nothing is copied either: Save hashes the
// state, so that Restore can tell whether it is still that of its step.
//
// State in the memory of a device is copied to the host by Options.On. Its hash is the sums of squares
// that a device.Memory computes there: a changed sign is not seen, nor a change below 2^-53 of the sum.
package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/internal/raw"
)

// ErrLost is in the error of Restore, on all ranks, when the state of a rank is nowhere any more:
// the rank and its holder were lost at the same time. Go on from a checkpoint.
var ErrLost = errors.New("the state of a rank is lost")

// Options say how often a Mirror works, and what is mirrored where. They must be the same on all
// ranks, except On; of ranks that hold the same state all must have an On of the same kind, or none.
type Options struct {
	// Every is the number of steps between two mirrored ones: Save does nothing in a step that it
	// does not divide. 0 means 1.
	Every int
	// Away is how many places a rank's holder is away, in the order of local numbers and, within
	// one, of hosts: so 1 is on the next host. 0 means 1.
	Away int
	// Shard returns which state a rank holds: ranks with the same number are replicas, whose states
	// are the same, bit for bit, in the same step. It must be the same function on all ranks. nil
	// means that each rank has a state of its own.
	Shard func(rank int) int
	// On copies bufs that are memory of a device, as device.Memory does through pinned memory. Save
	// waits for the copy, and sends it in the background. nil: all bufs are host memory.
	On ckpt.Copier
}

// Mirror mirrors the state of this rank. One goroutine at a time may use it.
type Mirror struct {
	o     Options
	bufs  raw.Views
	slots [2]slot
	last  int  // the slot that was written last
	live  live // in place of slots where all ranks hold the same

	ready      bool      // the last Restore has succeeded
	rank, size int       // in the Comm of the last Restore that did
	shards     []int     // by rank
	ring       *ccl.Comm // in the order of ring.go; nil where nothing is sent
	order      []int     // the ranks in that order
	under      *exchange // the last one that was begun, or nil
	// closing are Comms that are being closed. That of a failed Comm may take a tenth of a second,
	// which nobody should wait for in a recovery.
	closing sync.WaitGroup

	at func(rank, step int, point string) // for tests: the points at which a rank may be killed
}

// slot is a generation. Its bytes stay allocated when it is overwritten.
type slot struct {
	own  part // of this rank
	held part // of the rank whose holder this one is
	// whole says that all ranks have had own and held of this step.
	whole bool
}

// part is the state of one rank in one step.
type part struct {
	step  int // -1: none
	owner int
	data  []byte
}

// live is what is known about a state that is not copied.
type live struct {
	step int // -1: none
	hash int64
}

// New returns a Mirror without a state and without a Comm, which Restore gives it. nil Options are
// the defaults.
func New(o *Options) *Mirror {
	m := &Mirror{rank: -1, at: func(int, int, string) {}}
	if o != nil {
		m.o = *o
	}
	m.bufs.On = m.o.On
	m.o.Every, m.o.Away = cmp.Or(m.o.Every, 1), cmp.Or(m.o.Away, 1)
	m.forget()
	return m
}

// forget drops all states.
func (m *Mirror) forget() {
	for i := range m.slots {
		s := &m.slots[i]
		s.own.step, s.held.step, s.whole = -1, -1, false
	}
	m.live.step = -1
}

// copies returns how many ranks hold the state of a rank.
func (m *Mirror) copies(rank int) int {
	n := 0
	for _, s := range m.shards {
		if s == m.shards[rank] {
			n++
		}
	}
	return n
}

// Save mirrors bufs as the state after step. Call it on all ranks, in every step, directly after
// the update: what bufs hold must be the state of that step, and be the same views as in Restore.
//
// Save waits for the exchange of the Save before, copies bufs, and leaves the sending to the
// background. If ctx ends while it waits, the Mirror fails on all ranks, as a Comm does. A failure of
// the exchange, such as a lost rank, is the error of the next Save; the program may also hear of it
// from its own Comm. Restore makes good for both.
func (m *Mirror) Save(ctx context.Context, step int, bufs ...ccl.Buf) error {
	if !m.ready {
		return errors.New("mirror: Save without a Restore that has succeeded")
	}
	if step < 0 {
		return fmt.Errorf("mirror: Save of step %d: steps are counted from 0", step)
	}
	if replicated(m.shards) {
		hash, err := m.bufs.Hash(bufs)
		if err != nil {
			return fmt.Errorf("mirror: Save of step %d: %w", step, err)
		}
		m.live = live{step, hash}
		return nil
	}
	if step%m.o.Every != 0 {
		_, err := m.ended()
		return err
	}
	if err := m.Wait(ctx); err != nil {
		m.ring.Abort(err) // here and on the other ranks; nothing where there is none
		return err
	}
	s := &m.slots[1-m.last]
	s.own.step, s.held.step, s.whole = -1, -1, false
	m.at(m.rank, step, "begin")
	data, err := m.bufs.Pack(s.own.data, bufs)
	if err != nil {
		err = fmt.Errorf("mirror: Save of step %d: %w", step, err)
		m.ring.Abort(err)
		return err
	}
	m.at(m.rank, step, "copied")
	s.own = part{step: step, owner: m.rank, data: data}
	m.last = 1 - m.last
	m.begin(true)
	return nil
}

// Close waits for the last exchange, and closes the Mirror's Comm.
func (m *Mirror) Close() error {
	err := errors.Join(m.Wait(context.Background()), m.ring.Close())
	m.ring = nil
	m.closing.Wait()
	m.forget()
	m.ready, m.rank = false, -1
	return err
}
