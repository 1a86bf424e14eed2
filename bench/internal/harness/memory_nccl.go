//go:build nccl

package harness

import "github.com/goccl/goccl/gpu"

func init() { devices["nccl"] = gpus[gpu.CUDA]() }
