//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// TestProductLaunchRecorded: each launch of a graph is one entry of the flight recorder, with the number of calls in it, after the
// calls before it; it is complete once the stream has passed it, OnCall is told of it once, and GOCCL_TRACE has it beside the calls.
func TestProductLaunchRecorded(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		traces := t.TempDir()
		t.Setenv("GOCCL_TRACE", traces)
		var mu sync.Mutex
		told := map[uint64]int{}
		var begun, issued sync.WaitGroup
		begun.Add(2)
		issued.Add(2)
		o := ccl.Options{Backend: name, OnCall: func(o ccl.Observation) {
			if o.Call.Kind != ccl.KindGraph {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			told[o.Call.Seq]++
			assert.EqualValues(t, 3, o.Call.Count)
			assert.Equal(t, ccl.Complete, o.Call.State)
			assert.NoError(t, o.Err)
			assert.Positive(t, o.Took)
		}}
		well(t, 2, o, rt, func(ctx context.Context, r *on) {
			x := r.mem(1)
			require.NoError(t, r.sums(ctx, 1))
			require.NoError(t, ccl.Barrier(ctx, r.c)) // with HIP no call is known to be done during a capture
			require.NoError(t, r.s.BeginCapture())
			begun.Done() // both ranks capture at once, and each graph has the calls of its own rank
			begun.Wait()
			r.q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Max)
			r.q.Group(func(g ccl.Queue) error {
				g.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Max)
				g.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Max)
				return nil
			})
			issued.Done()
			issued.Wait()
			g, err := r.s.EndCapture()
			require.NoError(t, err)
			const launches = 20 // more than are kept
			for range launches {
				require.NoError(t, g.Launch(r.s))
			}
			require.NoError(t, r.s.Synchronize())
			var graphs []ccl.Call
			for c := range r.c.Trace() {
				if c.Kind == ccl.KindGraph {
					graphs = append(graphs, c)
				} else {
					assert.Empty(t, graphs, "before %v", &c)
				}
			}
			require.Len(t, graphs, 16, "launches that are kept")
			for i, c := range graphs {
				require.Equal(t, fmt.Sprintf("Graph #%d of 3 calls", launches-15+i), c.String())
				require.Equal(t, ccl.Complete, c.State)
				require.GreaterOrEqual(t, c.End, c.Start)
			}
			require.NoError(t, g.Close())
		})
		files, err := filepath.Glob(filepath.Join(traces, "*.jsonl"))
		assert.NoError(t, err)
		if assert.Len(t, files, 1) {
			text, err := os.ReadFile(files[0])
			assert.NoError(t, err)
			assert.Equal(t, 2*16, strings.Count(string(text), `"kind":"Graph"`), "%s", text)
			assert.Equal(t, 2, strings.Count(string(text), `"graphs":[{"seq":5,"kind":"Graph","count":3,"root":-1,"state":"complete"`), "%s", text)
		}
		assert.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			for i := range uint64(16) {
				if told[20-i] != 2 { // one for each rank
					return false
				}
			}
			return true
		}, soon, time.Millisecond)
	})
}
