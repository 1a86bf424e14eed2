//go:build nccl

package native

import (
	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/environ"
	rt "github.com/goccl/goccl/internal/gpu"
)

// nccl is NVIDIA's library: 2.16 to 2.32 as they were run, 2.10 to 2.15 by their headers.
var nccl = &vendor{
	name:    engine.NCCL.Name,
	title:   engine.NCCL.Title,
	search:  searchFor(&engine.NCCL),
	runtime: rt.CUDA,
	prefix:  "cuda",
	oldest:  21003, // bfloat16 and ncclAvg
	fp8:     22403,
	// ncclEnqueueCheck, src/enqueue.cc. Up to 2.27 it refuses to move them on older devices as
	// well: encode moves bytes.
	fp8Level:    90,
	launchOrder: true,
	others: []other{
		{"ncclAllToAllv", false, "RCCL", environ.RCCLLib.Name}, // since ROCm 5.2
		{"onecclGetVersion", false, "oneCCL", environ.OneCCLLib.Name},
	},
}

// NCCL is the backend "nccl".
func NCCL() engine.Backend { return nccl.backend(engine.NCCL, devicesOf[gpu.CUDA]()) }
