package cpu

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
)

// Whom Shrink has left out for certain, and not only since it is silent, is known on the new Comm.
func TestEnded(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(c *Comm)
		want []int
	}{
		{"it has closed the Comm", (*Comm).Close, []int{1}},
		{"it is silent", func(c *Comm) { c.rank.Site.Lost(1, errors.New("its process has been silent for 5s")) }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			of := again(t, twoOfAHost(t))
			for _, c := range of {
				c.rank.FailHere(call.NewFault(call.Aborted, 0, "on purpose"))
			}
			tc.end(of[1])
			child, f := of[0].Shrink(t.Context(), plane.Options{})
			require.Nil(t, f, "%v", f)
			defer child.Close()
			require.Equal(t, 1, child.Size())
			require.Equal(t, tc.want, Ended(child))
			require.Nil(t, Ended(of[0]))
		})
	}
}
