//go:build oneccl && cgo && linux

package oneccl

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/engine"
)

// How oneCCL's ranks find each other. goccl starts the ranks, or knows who did: oneCCL need not,
// nor be itself a part of an MPI program. Left to libfabric, its ranks ask a server in one thread
// of the first of them, each 2n times (src/atl/ofi/atl_ofi_helper.cpp), so that n ranks make 2n^2
// requests. On Aurora they find each other over MPI, as bench has it.

// servedMost is how many ranks may ask that server: half a million requests.
const servedMost = 500

// setTransport sets what nobody has set, and reports whether the ranks are left to that server by
// nobody's choice.
func setTransport() (served bool) {
	if l, err := boot.Detect(os.Getenv); err == nil {
		if over := engine.ForOneCCL(l.Launcher, l.Size, l.Locals, os.Getenv); over != nil {
			var said []string
			for _, v := range over {
				setEnv(v.Name, v.Value)
				said = append(said, v.Name+"="+v.Value)
			}
			if l.Rank == 0 {
				slog.Info("goccl: PALS has started this job on several hosts: oneCCL goes over MPI, with " +
					strings.Join(said, " ") + ". What is set in the environment stays")
			}
			return false
		}
	}
	served = os.Getenv("CCL_ATL_TRANSPORT") == "" && os.Getenv("CCL_KVS_MODE") == ""
	setEnv("CCL_PROCESS_LAUNCHER", "none", "CCL_ATL_TRANSPORT", "ofi")
	return served
}

// tooMany is the error for n ranks that one server would have to serve.
func tooMany(n int) error {
	var list []string
	for _, v := range engine.OneCCLOverMPI {
		list = append(list, v.Name+"="+v.Value)
	}
	return fmt.Errorf("oneCCL's %d ranks would make %d requests of one server to find each other; goccl lets at most %d ranks do that. Start them with mpiexec --pmi=pmix under PALS, where goccl chooses MPI, or set %s; CCL_ATL_TRANSPORT=ofi does it all the same",
		n, 2*n*n, servedMost, strings.Join(list, " "))
}
