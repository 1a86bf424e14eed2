package mpi

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"sync"

	"github.com/goccl/goccl/ccl"
)

// LogErrors says whether errors are logged as well as returned.
var LogErrors = true

// failed is err with the call it is of, logged; nil if err is.
func failed(call string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("mpi: %s: %w", call, err)
	if LogErrors {
		log.Print(err)
	}
	return err
}

// Comm is a communicator.
type Comm struct{ m *member }

// member is this process's part in a communicator, which several Comms may share.
type member struct {
	sync.Mutex // held during a call: a ccl.Comm is for one goroutine at a time
	c          *ccl.Comm
	early      map[envelope][][]byte // messages that arrived before they were asked for
}

// NewComm is the communicator of all ranks; with ranks, that of these, in that order. The latter is
// collective over all ranks of the job, and those of one communicator give the same ranks. One that
// is not among those it gives gets a Comm of rank -1 and size 0, on which every call is an error.
func NewComm(ranks []int) (*Comm, error) {
	w := world.Load()
	if w == nil {
		return nil, failed("NewComm", errBefore)
	}
	if len(ranks) == 0 {
		return &Comm{w}, nil
	}
	for i, r := range ranks {
		if r < 0 || r >= w.c.Size() || slices.Contains(ranks[:i], r) {
			return nil, failed("NewComm", fmt.Errorf("ranks %v: not different ones out of 0 to %d", ranks, w.c.Size()-1))
		}
	}
	color, key := -1, slices.Index(ranks, w.c.Rank())
	if key >= 0 {
		color = slices.Min(ranks) // which communicators without a common rank have not in common
	}
	members.Lock()
	defer members.Unlock()
	w.Lock()
	defer w.Unlock()
	c, err := w.c.Split(context.Background(), color, key)
	if err != nil {
		return nil, failed("NewComm", err)
	}
	if c == nil {
		return &Comm{}, nil
	}
	m := &member{c: c}
	members.all = append(members.all, m)
	return &Comm{m}, nil
}

var (
	errBefore  = errors.New("called before Init")
	errOutside = errors.New("this process is not among the ranks of the communicator")
)

// do makes one call.
func (cm *Comm) do(call string, f func(*member) error) error {
	if cm == nil || cm.m == nil {
		return failed(call, errOutside)
	}
	cm.m.Lock()
	defer cm.m.Unlock()
	return failed(call, f(cm.m))
}

// Rank is this process's rank in cm, -1 if it is not in it.
func (cm *Comm) Rank() int {
	if cm == nil || cm.m == nil {
		return -1
	}
	return cm.m.c.Rank()
}

// Size is the number of ranks of cm, 0 if this process is not in it.
func (cm *Comm) Size() int {
	if cm == nil || cm.m == nil {
		return 0
	}
	return cm.m.c.Size()
}

// Barrier waits until all ranks have called it.
func (cm *Comm) Barrier() error {
	return cm.do("Barrier", func(m *member) error { return ccl.Barrier(context.Background(), m.c) })
}

// Abort ends this process with status 1, and fails the calls of all other ranks of the job. It
// returns only where there is no job.
func (cm *Comm) Abort() error {
	w := world.Load()
	if w == nil {
		return failed("Abort", errBefore)
	}
	cause := errors.New("aborted by this rank")
	w.c.Abort(cause)
	w.c.Close() // the others hear of it
	fatal(failed("Abort", cause))
	return nil
}
