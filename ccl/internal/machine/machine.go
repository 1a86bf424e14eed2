// Package machine knows which CPU this is, and how the program was built: facts of one process,
// which others of its host need not share. Only what begins a job may ask (package plane, which has
// the ranks of a host agree), and what moves bytes by itself. What chooses how ranks work together
// must not see it: test/imports checks that.
package machine

import (
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// CPU is the row of this machine's CPU in the table of tuning. A test may force another: number cpu.family, from 1.
var CPU = tuning.RowOf(maker(), int(inject.From("cpu.family")))
