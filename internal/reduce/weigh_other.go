//go:build (!amd64 && !arm64) || noasm

package reduce

import (
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

func weighFast(isa, op.Type, unsafe.Pointer, []unsafe.Pointer, *weights, int) int { return 0 }
