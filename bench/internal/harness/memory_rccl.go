//go:build rccl

package harness

import "github.com/goccl/goccl/gpu"

func init() { devices["rccl"] = gpus[gpu.ROCm]() }
