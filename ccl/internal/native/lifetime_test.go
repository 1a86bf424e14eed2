//go:build (nccl || rccl) && cgo && linux

package native

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/native/cside"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// keeps fails the test if a communicator is used in it that a real library would have freed.
func keeps(t *testing.T, v *vendor) cside.Library {
	c := v.fake(t)
	before := c.Violations()
	t.Cleanup(func() { require.Equal(t, before, c.Violations(), "calls inside a communicator that was freed") })
	return c
}

// once is vendors for what lasts and is of the code that both share.
func once(t *testing.T, f func(t *testing.T, v *vendor)) { f(t, compiledIn[0]) }

// TestCrosswise: two communicators on the same devices make their first calls in another order on each rank, from two
// goroutines, and the library waits for the peers of each.
func TestCrosswise(t *testing.T) {
	once(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		worlds := [2][]*rank{world(t, v, 2), world(t, v, 2)}
		t.Setenv("FAKE_NCCL_CONNECT", "1000")
		var memory [2][2]*gpu.Mem[int32]
		for w, ranks := range worlds {
			for i, r := range ranks {
				memory[w][i] = r.memory(t)
			}
		}
		call := func(w, i int) chan error {
			done := make(chan error, 1)
			go func() {
				err := worlds[w][i].issueOne(memory[w][i])
				if err == nil {
					err = worlds[w][i].wait(within(t))
				}
				done <- err
			}()
			return done
		}
		lib := keeps(t, v)
		before := lib.Live()
		first := []chan error{call(0, 0), call(1, 1)}
		require.Eventually(t, func() bool { return lib.Live()[5] == before[5]+2 }, limit, time.Millisecond, "both are under way")
		for _, done := range append(first, call(1, 0), call(0, 1)) {
			select {
			case err := <-done:
				require.NoError(t, err)
			case <-time.After(soon):
				for _, r := range append(worlds[0], worlds[1]...) {
					r.Abort()
				}
				t.Fatal("two communicators wait for each other's device")
			}
		}
		for _, ms := range memory {
			for _, m := range ms {
				require.NoError(t, m.Free())
			}
		}
	})
}
