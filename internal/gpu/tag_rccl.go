//go:build rccl

package gpu

func init() { HIP.tagged = true }
