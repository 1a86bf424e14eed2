package plane

import (
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/group"
)

// Standing is what is known of one rank of one Comm, with the questions that take more than one
// part of a Member to answer.
type Standing struct {
	group   *group.Group
	hooks   *Hooks
	share   *Share
	order   *Order
	current *Current
	fate    *Fate

	Elsewhere Elsewhere
	Label     Label

	Site    *Site
	Bell    bell // of the call under way
	note    note
	spread  spread
	late    time.Duration // by which sleeps in poll(2) ended later than they were to; the goroutine's that makes the calls
	asked   atomic.Bool   // another rank was heard to wait
	reports atomic.Bool   // a rank was lost: where this one stands belongs to the report
}

// Elsewhere is the call whose data another engine moves.
type Elsewhere struct {
	Foreign atomic.Uint64 // ForeignCall | when the call under way began; 0 if there is none
	stands  atomic.Uint64 // the same of a device that does not move
	gaveUp  atomic.Bool   // such a call has taken Options.Timeout, and the Comm is about to fail
}

// Begin notes that such a call has begun.
func (c *Elsewhere) Begin(since int64) { c.Foreign.Store(ForeignCall | uint64(since)) }

// End notes that it has ended.
func (c *Elsewhere) End() { c.Foreign.Store(0) }

// Label is what the Comm is called in reports.
type Label struct{ name atomic.Pointer[string] }
