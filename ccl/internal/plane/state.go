package plane

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/region"
)

// Standing is what is known of one rank of one Comm, with the questions that take more than one part of a Member to answer.
type Standing struct {
	group   *group.Group
	hooks   *Hooks
	share   *Share
	order   *Order
	current *Current
	fate    *Fate

	Elsewhere Elsewhere
	Label     Label

	Site   *Site
	Bell   bell // of the call under way
	note   note
	spread spread
	asked  atomic.Bool // another rank was heard to wait
}

// Order is the order of this rank's calls. It is the goroutine's that makes the calls.
type Order struct {
	group     *group.Group
	share     *Share
	unchecked bool           // Options.Unchecked
	entered   *atomic.Uint64 // this rank's words in the region
	records   region.Records
	Start     uint32 // where the counters have begun: see BeginAt
	Calls     uint64 // collectives made
	order     uint32 // their hash
	Round     uint32 // the last round opened
}

// Fate is whether and why this rank's Comm has failed.
type Fate struct {
	Ctx       context.Context // ends when the Comm fails or closes
	Cancel    context.CancelFunc
	Cause     atomic.Pointer[call.Fault]
	Proposal  atomic.Pointer[call.Fault] // what this rank first believed to be the cause: not nil where Cause is not
	Sided     atomic.Pointer[call.Fault] // see Side
	failedAt  atomic.Int64               // nanoseconds since the job began
	outlived  atomic.Pointer[outlived]   // see lastcall.go
	Closed    atomic.Bool
	Closing   atomic.Bool   // see Interrupt
	wordSince time.Duration // that the abort word was seen set, in lived time; the monitor's
	voted     []uint64      // collectives whose sides this host has told, under Job.mu: see vote.go
}

// Elsewhere is the call whose data another engine moves.
type Elsewhere struct {
	Foreign atomic.Uint64 // ForeignCall | when the call under way began; 0 if there is none
	stands  atomic.Uint64 // the same of a device that does not move
}

// Begin notes that such a call has begun.
func (c *Elsewhere) Begin(since int64) { c.Foreign.Store(ForeignCall | uint64(since)) }

// End notes that it has ended.
func (c *Elsewhere) End() { c.Foreign.Store(0) }

// Label is what the Comm is called in reports.
type Label struct{ name atomic.Pointer[string] }
