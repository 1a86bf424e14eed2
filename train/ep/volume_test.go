package ep_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ep"
)

// What ranks of 3, 2, 0 and 7 tokens send by Volume is what their choices say, and with the rows that stay it is what
// their calls had: the larger of what they sent and received.
func TestVolume(t *testing.T) {
	cuts := []int{0, 3, 5, 5, 12}
	x, logits := numbers[float32](1, tokens*width), numbers[float32](2, tokens*experts)
	w, dy := numbers[float32](3, experts*width*width), numbers[float32](4, tokens*width)
	var all, away atomic.Int64
	ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
		called := 0
		own, err := c.SplitWith(t.Context(), 0, c.Rank(), func(o *ccl.Options) {
			o.OnCall = func(k ccl.Observation) {
				if k.Call.Kind == ccl.KindAllToAllV {
					called += k.Bytes
				}
			}
		})
		require.NoError(t, err)
		defer own.Close()
		lo, hi := cuts[c.Rank()], cuts[c.Rank()+1]
		l := &ep.Layer{Comm: own, Experts: experts, Top: top, Width: width}
		p, _, _, _, _ := run(t.Context(), t, l, x[lo*width:hi*width], logits[lo*experts:hi*experts], w, dy[lo*width:hi*width])
		chosen, _ := p.Choices()
		stay := 0
		for _, e := range chosen {
			if int(e) == c.Rank() { // an expert a rank
				stay++
			}
		}
		_, come := p.Rows(0)
		forward, backward := p.Volume()
		require.Equal(t, (len(chosen)-stay+come-stay)*width, forward)
		require.Equal(t, forward, backward)
		require.Equal(t, 4*max(len(chosen), come)*width*4, called)
		all.Add(int64(forward))
		away.Add(int64(2 * (len(chosen) - stay) * width))
	})
	require.Equal(t, away.Load(), all.Load(), "what leaves comes back")
	require.NotZero(t, away.Load())
}
