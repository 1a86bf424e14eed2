package cpu

import (
	"github.com/goccl/goccl/ccl/internal/call"
)

// Disturbed is a Bootstrap of a rank that is to go wrong: package ccltest's.
type Disturbed interface {
	// BeforeCall is called before each call of the rank, on any of its Comms. A fault fails
	// the Comm.
	BeforeCall(c *Comm, k *call.Call) *call.Fault
}
