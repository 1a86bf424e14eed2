package units

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/xla/nn"
)

// A kind whose program would have the name of another's is refused: one of the two would run in the place of the other.
func TestKinds(t *testing.T) {
	for kind, want := range map[string]string{"head": "", "in_window": "", "in_evaluated": "",
		"in_eval":        `fit: the kind "in_eval" of units is the name of a program of "in": call it something else`,
		"in_back_lowest": `fit: the kind "in_back_lowest" of units is the name of a program of "in"`} {
		m := &nn.Model{Loss: nn.CrossEntropy, Units: []nn.Unit{
			{Name: "in.", Kind: "in", Forward: func(s *nn.Scope, _ nn.V) nn.V { return s.Embed(s.Tokens(), "embed", 5, 4) }},
			{Name: "out.", Kind: kind, Forward: func(s *nn.Scope, x nn.V) nn.V { return s.Linear(x, "head", 5, false) }},
		}}
		if _, err := New(m, Options{Rows: 1, Tokens: 2}); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}
