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

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"ab", "ba", 1}, {"kitten", "sitting", 3}, {"redcue", "reduce", 1}} {
		require.Equal(t, tc.want, distance(tc.a, tc.b), tc.a+" "+tc.b)
	}
}
