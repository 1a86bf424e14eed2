//go:build nccl

package gpu

func init() { CUDA.tagged = true }
