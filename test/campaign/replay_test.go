package campaign

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var sumsFlag = flag.String("sums", "", "write a hash of all that jobs of the world send, one a line, to this file")

// A seed gives the plan, and not all of the schedule: what the runtime chooses by chance, or by the time on the wall, is
// not the seed's. With -sums TestReplay runs 40 jobs of the world twice, and counts for how many seeds all that is sent
// is the same, to the nanosecond: see docs/measured/world.md.
func TestReplay(t *testing.T) {
	const seeds = 40
	for seed := range seeds {
		var plans [2]string
		for i := range plans {
			b, err := newBox(fmt.Sprint(seed + 1))
			require.NoError(t, err)
			plans[i] = b.String()
		}
		require.Equal(t, plans[0], plans[1])
	}
	if *sumsFlag == "" {
		return
	}
	same := 0
	f, err := os.Create(*sumsFlag)
	require.NoError(t, err)
	defer f.Close()
	for seed := range seeds {
		var sums [2]uint64
		for i := range sums {
			b, err := newBox(fmt.Sprint(seed + 1))
			require.NoError(t, err)
			sums[i] = b.run(t).sum
		}
		same += is(sums[0] == sums[1])
		fmt.Fprintln(f, seed+1, sums[0])
	}
	t.Logf("%d of %d seeds are the same, twice in one process", same, seeds)
}
