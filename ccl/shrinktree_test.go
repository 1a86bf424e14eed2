package ccl_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// A Comm of more than 64 ranks agrees through a tree: those that are left get one Comm, though ranks are lost through which others
// speak, the lead among them, and one has closed the Comm.
func TestShrinkThroughTree(t *testing.T) {
	const n, hosts, closes = 72, 24, 7
	lost := map[int]bool{0: true, 3: true, 4: true} // the lead; the first two ranks of host 1, through which others speak
	opts := []ccltest.Option{ccltest.Hosts(hosts), ccltest.With(ccl.Options{PeerTimeout: time.Minute})}
	var want []int
	for r := range n {
		if lost[r] {
			opts = append(opts, ccltest.Kill(r, 1))
		} else if r != closes {
			want = append(want, r)
		}
	}
	ccltest.Run(t, n, func(t testing.TB, world *ccl.Comm) {
		if world.Rank() == closes { // the second of its host
			require.NoError(t, world.Close())
			return
		}
		c := world
		for c.Size() > len(want) { // one that is to be killed may come to a Shrink before its first call
			require.Error(t, untilFailed(t.Context(), c), "of %d ranks", c.Size())
			next, err := c.Shrink(t.Context())
			require.NoError(t, err)
			defer next.Close()
			c = next
		}
		require.Equal(t, want, members(t, c, world.Rank()))
	}, opts...)
}
