//go:build rccl

package native

import (
	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/environ"
	rt "github.com/goccl/goccl/internal/gpu"
)

// rccl is AMD's library, which exports NCCL's names and follows its versions. ncclAllToAll, Gather and
// Scatter are its own; the first is spelled ncclAlltoAll as well since 2.28.
var rccl = &vendor{
	name:    engine.RCCL.Name,
	title:   engine.RCCL.Title,
	search:  searchFor(&engine.RCCL),
	runtime: rt.HIP,
	prefix:  "hip",
	oldest:  21003,
	fp8:     22005, // ROCm 6.2
	// hipEventQuery ends even a capture of another thread's own mode (PyTorch's PR 176251).
	queryBreaks:   true,
	currentDevice: true, // its direct, copy engine and hierarchical ways, up to 2.30.4
	others: []other{
		{"onecclGetVersion", false, "oneCCL", environ.OneCCLLib.Name},
		{"ncclAllToAllv", true, "NCCL", environ.NCCLLib.Name}, // NCCL has none, up to 2.32
	},
}

// RCCL is the backend "rccl".
func RCCL() engine.Backend { return rccl.backend(engine.RCCL, devicesOf[gpu.ROCm]()) }
