//go:build oneccl && cgo && linux

package oneccl

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
)

// More ranks than one server may serve are refused without a call, unless somebody has chosen that
// server.
func TestTooMany(t *testing.T) {
	id := make([]byte, idBytes)
	l := &library{cpu: errors.New("there is none"), served: true}
	_, err := l.New(t.Context(), engine.Group{Size: servedMost + 1, Device: -1}, id)
	require.EqualError(t, err, "oneCCL's 501 ranks would make 502002 requests of one server to find each other; goccl lets at most 500 ranks do that."+
		" Start them with mpiexec --pmi=pmix under PALS, where goccl chooses MPI, or set CCL_PROCESS_LAUNCHER=pmix CCL_ATL_TRANSPORT=mpi CCL_KVS_MODE=mpi;"+
		" CCL_ATL_TRANSPORT=ofi does it all the same")
}
