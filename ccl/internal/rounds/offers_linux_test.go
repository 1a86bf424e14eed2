package rounds

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// Memory that all ranks can touch is used in place. Two ranks that have both staged a small vector reduce from there.
func TestExchangeOfSharedMemory(t *testing.T) {
	for _, tc := range []struct {
		name    string
		ranks   int
		n       int
		first   int
		to      int // tuning.Layout.StageSharedTo
		inPlace int // ranks whose result is their operand
		want    way
		staged  int // ranks
	}{
		{"staged", 2, 8000, 8000, 8000, 0, byStage, 2},
		{"too much for it", 2, 8008, 8008, 8000, 0, byDirect, 0},
		{"in place", 2, 16000, 16000, 8000, 2, byStage, 2},
		{"too much for it in place", 2, 16008, 16008, 8000, 2, byDirect, 0},
		{"one stages in vain", 2, 16000, 16000, 8000, 1, byDirect, 1},
		{"never", 2, 80, 80, 0, 0, byDirect, 0},
		{"three ranks", 3, 80, 80, 8000, 0, byDirect, 0},
		{"no first piece", 2, 8000, 0, 8000, 0, byDirect, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			host, err := shm.NewShared()
			require.NoError(t, err)
			all := ranksOn(t, host, tc.ranks, byStage)
			src, dst := make([][]byte, tc.ranks), make([][]byte, tc.ranks)
			for r, c := range all {
				c.local.Layout.StageSharedTo = tc.to
				mem, err := c.mem.MakeMemory(2 * tc.n)
				require.NoError(t, err)
				copy(mem, bytesOf(vector(r, 0, tc.n/4)))
				src[r], dst[r] = mem[:tc.n], mem[tc.n:]
				if r < tc.inPlace {
					dst[r] = src[r]
				}
			}
			atOnce(t, all, func(c *Team) *call.Fault {
				k := callOf(call.AllReduce, -1, tc.n/4, nil, nil)
				k.Dst, k.Src = dst[c.me], src[c.me]
				enter(c, k)
				w, ahead, f := c.offers.exchange(t.Context(), k, k.Src, k.Dst, tc.first)
				c.rank.EndCall()
				assert.Equal(t, tc.want, w, "rank %d", c.me)
				assert.Equal(t, tc.want == byStage, ahead, "rank %d", c.me)
				return f
			})
			staged := 0
			for r, o := range all[0].offers.posted {
				if o.flags&offersStaged != 0 {
					staged++
					mem, f := all[0].staging.stage(r, all[0].rank.Order.Round)
					require.Nil(t, f)
					require.Equal(t, vector(r, 0, 2), []int32{*(*int32)(mem), *(*int32)(unsafe.Add(mem, 4))})
				}
			}
			assert.Equal(t, tc.staged, staged)
		})
	}
}
