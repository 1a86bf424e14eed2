//go:build mpi

package ccl

import (
	"github.com/goccl/goccl/ccl/internal/mpiengine"
	"github.com/goccl/goccl/internal/engine"
)

func init() { engine.Register(mpiengine.Backend()) }
