package cpu

import (
	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/algo"
)

// What package ccl asks of a rank beside its calls. Any goroutine may ask. What it asks seldom it asks of Control.

// Control is c as the control plane sees it.
func (c *Comm) Control() *plane.Member { return &c.rank }

// Rank is this rank.
func (c *Comm) Rank() int { return c.rank.Group.Rank() }

// Size is the number of ranks.
func (c *Comm) Size() int { return c.rank.Group.Size() }

// World is the rank in the job's first Comm of rank r.
func (c *Comm) World(r int) int { return c.rank.Group.World(r) }

// Topology says which ranks share a host.
func (c *Comm) Topology() algo.Topology { return c.rank.Group.Topology() }

// ID tells the Comms of a job apart.
func (c *Comm) ID() uint64 { return c.rank.Group.ID() }

// Name is what the Comm is called in reports.
func (c *Comm) Name() string { return c.rank.Standing.Label.Name() }

// SetName names the Comm.
func (c *Comm) SetName(name string) { c.rank.Standing.Label.SetName(name) }

// Transport is what the ranks talk over.
func (c *Comm) Transport() string { return c.rank.Standing.Transport() }

// MakeMemory returns n bytes, all zero, that all ranks of this host can map. They outlive the Comm and the job.
func (c *Comm) MakeMemory(n int) ([]byte, error) { return c.mem.MakeMemory(n) }

// Now is the coarse time since the job began, in nanoseconds.
func (c *Comm) Now() int64 { return c.rank.Clock.Now() }

// Failure is why the Comm failed, nil while it has not.
func (c *Comm) Failure() *call.Fault { return c.rank.Fate.Failure() }

// Fail fails the Comm on all its ranks, with f or with what came before it. It does not wait for a decision.
func (c *Comm) Fail(f *call.Fault) { c.rank.Fail(f) }

// AbortWith fails c since the program asks for it, with f or with what came before it, and returns
// when that is decided.
func AbortWith(c *Comm, f *call.Fault) { plane.Abort(&c.rank, f) }

// Ended fails the Comm because of a call that could not begin, and waits for the cause.
func (c *Comm) Ended(f *call.Fault) *call.Fault { return c.rank.Ended(f) }

// Odd finds a rank that has made another call than this one, in calls that cannot look for themselves.
func (c *Comm) Odd() *call.Fault { return c.rank.Odd() }
