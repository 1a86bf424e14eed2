//go:build xla && cgo && linux

package fit_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/xla/nn/models"
)

// TestStep is no test of its own: test/peers/transformers measures it. It trains the model of a config.json from random
// weights on random tokens, with XLA's own flags, and prints each step's seconds and the most bytes that it has held.
func TestStep(t *testing.T) {
	f := strings.Split(os.Getenv("GOCCL_TEST_STEP"), ",")
	if len(f) != 4 {
		t.Skip("hardware: GOCCL_TEST_STEP is not set: a quiet machine (make models-step)")
	}
	number := func(s string) int { n, err := strconv.Atoi(s); require.NoError(t, err); return n }
	o := options()
	o.Rows, o.Tokens = number(f[1]), number(f[2])
	c, err := models.Read(f[0])
	require.NoError(t, err)
	path := xlatest.Path(t)
	ccltest.Run(t, 1, func(t testing.TB, world *ccl.Comm) {
		m, err := machine.New(t.Context(), world, &machine.Options{Plugin: path, Client: "cpu_device_count=1"})
		require.NoError(t, err)
		x, err := fit.New(t.Context(), m, c.Model(), &o)
		require.NoError(t, err)
		for n := 1; n <= number(f[3]); n++ {
			var b fit.Batch
			for range o.Rows * o.Tokens {
				b.Tokens, b.Wanted = append(b.Tokens, rand.Int32N(8192)), append(b.Wanted, rand.Int32N(8192))
			}
			start := time.Now()
			loss, err := x.Step(t.Context(), n, 1e-4, []fit.Batch{b})
			require.NoError(t, err)
			_, err = x.Read(t.Context(), loss)
			require.NoError(t, err)
			fmt.Printf("{\"seconds\": %g}\n", time.Since(start).Seconds())
		}
		var use syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
		fmt.Printf("{\"peak\": %d}\n", use.Maxrss*1024)
		require.NoError(t, x.Close())
		require.NoError(t, m.Close())
	}, ccltest.Deadline(30*time.Minute))
}
