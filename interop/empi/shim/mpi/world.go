package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/ccl"
)

// Root is the rank that does what one rank must do.
const Root int = 0

// members are this process's communicators, the world first.
var members struct {
	sync.Mutex // held while one is made or all are closed
	all        []*member
}

// world is of all ranks; nil before Init. It stays after Finalize, closed.
var world atomic.Pointer[member]

// IsOn tells whether Init was called, also after Finalize.
func IsOn() bool { return world.Load() != nil }

// Init joins the job of the launcher that started this process, or a job of one rank. If it cannot, it says so and ends
// the process with status 1: to go on would make a job of N ranks N jobs of one. InitThreadSafe returns the error.
func Init() {
	if err := InitThreadSafe(); err != nil {
		fatal(err)
	}
}

// InitThreadSafe is Init, with an error.
func InitThreadSafe() error {
	members.Lock()
	defer members.Unlock()
	if IsOn() {
		return failed("Init", errors.New("called twice"))
	}
	// As in MPI, a call may take as long as it takes: one rank may be busy for an hour. One that is lost is noticed.
	c, err := ccl.Join(context.Background(), &ccl.Options{Timeout: -1})
	if err != nil {
		return failed("Init", err)
	}
	w := &member{c: c}
	members.all = append(members.all, w)
	world.Store(w)
	return nil
}

// Finalize waits until all ranks have come here, and leaves the job. If the job failed it ends the
// process with status 1: the launcher must learn of it, also from a program that looks at no error.
func Finalize() {
	members.Lock()
	defer members.Unlock()
	if len(members.all) == 0 {
		return
	}
	w := world.Load()
	w.Lock()
	defer w.Unlock()
	err := ccl.Barrier(context.Background(), w.c)
	for _, m := range slices.Backward(members.all) { // the world last: the others came out of it
		err = errors.Join(err, m.c.Close())
	}
	members.all = nil
	if err != nil {
		fatal(failed("Finalize", err))
	}
}

// WorldRank is this process's rank, 0 before Init.
func WorldRank() int {
	if w := world.Load(); w != nil {
		return w.c.Rank()
	}
	return 0
}

// WorldSize is the number of ranks, 1 before Init.
func WorldSize() int {
	if w := world.Load(); w != nil {
		return w.c.Size()
	}
	return 1
}

// fatal ends a process that has nobody to return err to.
func fatal(err error) {
	if !LogErrors { // else it is there already
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}
