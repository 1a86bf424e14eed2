//go:build nccl

package ccl

import (
	"github.com/goccl/goccl/ccl/internal/native"
	"github.com/goccl/goccl/internal/engine"
)

func init() { engine.Register(native.NCCL()) }
