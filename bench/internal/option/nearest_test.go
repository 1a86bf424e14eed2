package option

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	known := []string{"allreduce", "allgather", "reduce", "broadcast", "barrier"}
	for in, want := range map[string]string{
		"allredcue": "allreduce", "alreduce": "allreduce", "allreduce": "allreduce", "bcast": "",
		"brodcast": "broadcast", "barier": "barrier", "xyzzy": "", "": "", "gath": "", "all": "allreduce", "bar": "barrier", "b": "",
	} {
		require.Equal(t, want, Nearest(in, known), in)
	}
}
