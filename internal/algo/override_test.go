package algo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestParseOverride(t *testing.T) {
	for _, tc := range []struct {
		text string
		want Table
		err  string
	}{
		{"", nil, ""},
		{"  ", nil, ""},
		{"allreduce=ring", Table{{Kind: op.AllReduce, Name: "ring"}}, ""},
		{" allreduce = ring, broadcast=scatter-ring ", Table{{Kind: op.AllReduce, Name: "ring"}, {Kind: op.Broadcast, Name: "scatter-ring"}}, ""},
		{"ring", nil, `GOCCL_ALGO: "ring": an item is collective=algorithm, such as allreduce=ring`},
		{"allreduce=ring,", nil, `GOCCL_ALGO: "": an item is collective=algorithm, such as allreduce=ring`},
		{"allredcue=ring", nil, `GOCCL_ALGO: "allredcue": no such collective; there are barrier, broadcast, reduce, allreduce, reducescatter, allgather, gather, scatter, alltoall`},
		{"gather=ring", nil, `GOCCL_ALGO: "ring": no such algorithm for gather; there are tree, direct`},
		{"allgather=ring,allgather=direct", nil, `GOCCL_ALGO: allgather is given twice in "allgather=ring,allgather=direct"`},
	} {
		got, err := ParseOverride(tc.text)
		text := ""
		if err != nil {
			text = err.Error()
		}
		require.Equal(t, tc.err, text, tc.text)
		require.Equal(t, tc.want, got, tc.text)
	}
}

// FuzzParseOverride: whatever is accepted can be built.
func FuzzParseOverride(f *testing.F) {
	f.Add("allreduce=ring,broadcast=tree")
	f.Add("=,=")
	f.Fuzz(func(t *testing.T, text string) {
		tab, err := ParseOverride(text)
		if err != nil {
			return
		}
		for _, e := range tab {
			require.Equal(t, e.Name, Choose(e.Kind, 1<<20, Blocks(4, 2), false, tab))
			_, err := Build(e.Name, e.Kind, Blocks(4, 2), 3, 0)
			require.NoError(t, err)
		}
	})
}
