package rounds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// Ranks of one process touch each other's memory: they need no round to find that out.
func TestAcquaint(t *testing.T) {
	c := ranksOf(t, 3, byDirect)[1]
	before := c.rank.Order.Round
	require.Nil(t, c.offers.acquaint(t.Context(), barrier()))
	assert.True(t, c.mem.Known.Asked)
	assert.True(t, c.mem.Known.All)
	assert.False(t, c.mem.Known.Reads)
	assert.Equal(t, before, c.rank.Order.Round)
	assert.Len(t, c.offers.posted, 3)
	assert.Equal(t, []int32{0, 0, 0}, c.mem.Pids)
	assert.Len(t, c.mem.Scratch, 2*tuning.ReadPiece)
}

func TestNewOffer(t *testing.T) {
	c := ranksOf(t, 2, byDirect)[0]
	src, dst := bytesOf(vector(0, 0, 4)), bytesOf(make([]int32, 4))
	span := func(b []byte) shm.Span { return c.rank.Site.Here.Host.SpanOf(b) }
	for _, tc := range []struct {
		name     string
		src, dst []byte
		want     offer
	}{
		{"two places", src, dst, offer{src: span(src), dst: span(dst)}},
		{"in place", src, src, offer{src: span(src), dst: span(src), flags: offersInPlace}},
		{"nothing, in one place", src[:0], src, offer{src: span(src), dst: span(src)}},
		{"only what is sent", src, nil, offer{src: span(src)}},
	} {
		assert.Equal(t, tc.want, c.offers.newOffer(tc.src, tc.dst), tc.name)
	}
	assert.NotZero(t, span(src).At)
}

// All ranks hear the same of the offers: which way they allow, whether some rank's are in place, and whether all have staged
// the first piece.
func TestExchange(t *testing.T) {
	for _, tc := range []struct {
		name    string
		w       way
		first   int
		inPlace int // the rank whose result is its operand; -1: none
		want    way
		ahead   bool
	}{
		{"in place of goroutines", byDirect, 4000, -1, byDirect, false},
		{"staged", byStage, 4000, -1, byStage, true},
		{"staged, one in place", byStage, 4000, 1, byStage, true},
		{"staged, nothing ahead", byStage, 0, -1, byStage, false},
		{"read", byRead, 40_000, -1, byRead, false},
		{"read, too few bytes for it", byRead, 4000, -1, byStage, true},
		{"read, one in place, which stages", byRead, 40_000, 1, byRead, false},
		{"read, without a first piece", byRead, 0, 0, byRead, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := ranksOf(t, 2, tc.w)
			n := max(tc.first, 4000)
			var src, dst [2][]int32
			for r := range all {
				src[r], dst[r] = vector(r, 0, n/4), make([]int32, n/4)
				if r == tc.inPlace {
					dst[r] = src[r]
				}
			}
			atOnce(t, all, func(c *Team) *call.Fault {
				k := callOf(call.AllReduce, -1, n/4, dst[c.me], src[c.me])
				enter(c, k)
				if f := c.offers.acquaint(t.Context(), k); f != nil {
					return f
				}
				w, ahead, f := c.offers.exchange(t.Context(), k, k.Src, k.Dst, tc.first)
				c.rank.EndCall()
				assert.Equal(t, tc.want, w, "rank %d", c.me)
				assert.Equal(t, tc.ahead, ahead, "rank %d", c.me)
				return f
			})
			for _, c := range all {
				for r, o := range c.offers.posted {
					assert.Equal(t, c.rank.Site.Here.Host.SpanOf(bytesOf(src[r])), o.src)
					assert.Equal(t, c.rank.Site.Here.Host.SpanOf(bytesOf(dst[r])), o.dst)
					assert.Equal(t, r == tc.inPlace, o.flags&offersInPlace != 0, "rank %d", r)
				}
				assert.Equal(t, tc.inPlace >= 0, c.offers.someInPlace())
			}
		})
	}
}
