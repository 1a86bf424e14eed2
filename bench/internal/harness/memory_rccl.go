//go:build rccl

package harness

import "github.com/goccl/goccl/internal/gpu"

func init() { devices["rccl"] = gpus(gpu.HIP) }
