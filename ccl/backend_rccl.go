//go:build rccl

package ccl

import "github.com/goccl/goccl/ccl/internal/native"

func init() { backends["rccl"] = native.RCCL() }
