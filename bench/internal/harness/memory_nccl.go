//go:build nccl

package harness

import "github.com/goccl/goccl/internal/gpu"

func init() { devices["nccl"] = gpus(gpu.CUDA) }
