package scale

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/test/program"
)

var ranks = flag.Int("ranks", 24, "ranks of the jobs of many processes")

// flat is the size of jobs up to which all relays reach rank 0 without others: see ccl/boot.
const flat = 64

func init() { roles["killed"] = killed }

// killed loses a rank.
func killed(ctx context.Context, c *ccl.Comm) error {
	err := lose(ctx, c, 1)
	time.Sleep(time.Second + time.Duration(c.Size())*5*time.Millisecond) // the ends of hundreds of processes would hold up the others
	return err
}

// TestThousand is a job of many processes, on one host and on several: they join, make calls, and
// end; in another one a rank is killed, which all others hear. On 2 cores 1,000 are to join in 25 s
// and to hear in 1 s, with 12 GiB in all; the test allows ten times the time.
func TestThousand(t *testing.T) {
	n := *ranks
	t.Log("| ranks | hosts | joined after s | 9 calls s | GB of the job | descriptors of a process, at most | a kill heard after s |")
	places := []int{1, 4}
	if n > flat {
		places = append(places, n/8) // their relays are a tree
	}
	for _, hosts := range places {
		t.Run(fmt.Sprintf("%d hosts", hosts), func(t *testing.T) {
			f, err := job(t, n, hosts, "calls")
			require.NoError(t, err)
			require.Len(t, f["called"], n)
			k, err := job(t, n, hosts, "killed")
			var x *boot.ExitError
			require.ErrorAs(t, err, &x)
			require.Equal(t, n/2, x.Rank)
			require.Equal(t, n-1, x.Well, "the others end well")
			require.Len(t, k["heard"], n-1)
			joined, called, heard := seconds(f["began"], f["joined"]), seconds(f["joined"], f["called"])-seconds(f["joined"], f["joined"]), seconds(k["ended"], k["heard"])
			memory := program.Total(f["proportional"])
			most := int64(0)
			for _, d := range f["descriptors"] {
				most = max(most, d)
			}
			t.Logf("| %d | %d | %.2f | %.2f | %.2f | %d | %.3f |", n, hosts, joined, called, float64(memory)/1e9, most, heard)
			require.Less(t, joined, 250.0)
			require.Less(t, heard, 10.0)
			require.Less(t, memory, int64(12<<30))
		})
	}
}
