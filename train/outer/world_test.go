package outer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
	"github.com/goccl/goccl/train/outer"
	"github.com/goccl/goccl/train/quant"
)

// On a link of 100 Mbit/s with a round trip of 20 ms, steps of 50 ms hide an exchange behind them, which without a Delay is waited for.
func TestDelayHidesTheExchange(t *testing.T) {
	const n, every, steps, step = 100_000, 20, 80, 50 * time.Millisecond
	for _, delay := range []int{0, 8} {
		for _, k := range []quant.Codec{quant.None, quant.Int8} {
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				m := newModel(c.Rank(), n)
				u := begun(t, c, m, &outer.Options{Every: every, Delay: delay, Codec: k})
				began := time.Now()
				for i := range steps {
					time.Sleep(step) // in the network's time, as all here
					m.step(i)
					advance(t, u)
				}
				waited, whole := u.Stats().Waited, time.Since(began)
				if delay > 0 {
					require.Less(t, waited, whole/20, "%v", k)
				} else {
					require.Greater(t, waited, steps/every*10*time.Millisecond, "%v", k) // a trip each at least
				}
				_, err := u.Flush(t.Context())
				require.NoError(t, err)
				require.NoError(t, u.Same(t.Context()))
			}, ccltest.Hosts(3), ccltest.World(1, simnet.Link{Delay: 10 * time.Millisecond, Rate: 12.5e6}, nil))
		}
	}
}
