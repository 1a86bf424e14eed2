//go:build nccl

package ccl

import "github.com/goccl/goccl/ccl/internal/native"

func init() { backends["nccl"] = native.NCCL() }
