package mesh_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// So is a rank whose process is stopped, and tells nothing.
func TestStoppedRankIsNamed(t *testing.T) {
	const stopped = 5
	for name, opts := range map[string][]ccltest.Option{"one host": nil, "two hosts": {ccltest.Hosts(2)}} {
		for what, step := range steps {
			if what != "tp first" && (testing.Short() || what != "a pipeline" || opts == nil) {
				continue
			}
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				ccltest.Run(t, 8, func(t testing.TB, c *ccl.Comm) {
					m := limited(t, c, step)
					defer m.Close()
					pid := []int{os.Getpid()}
					require.NoError(t, ccl.Broadcast(t.Context(), c, pid, stopped))
					switch c.Rank() {
					case stopped:
						require.NoError(t, syscall.Kill(pid[0], syscall.SIGSTOP))
						<-c.Done()
						return
					case 0:
						defer func() {
							<-c.Done()
							require.NoError(t, syscall.Kill(pid[0], syscall.SIGCONT))
						}()
					}
					requireNamed(t, m, step, stopped)
				}, append(opts, ccltest.Processes(8))...)
			})
		}
	}
}
