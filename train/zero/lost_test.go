package zero_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/tp"
	"github.com/goccl/goccl/train/zero"
)

// cubeLoop trains on 2 x 2 x 2 ranks until something fails: parameters sharded over dp, an exchange over tp in each
// unit, activations sent over pp and their gradients back, the norm over tp and pp.
func cubeLoop(ctx context.Context, c *ccl.Comm, step *atomic.Int32) (err error) {
	m, err := mesh.New(ctx, c, mesh.Dim{Name: "dp", Size: 2}, mesh.Dim{Name: "pp", Size: 2}, mesh.Dim{Name: "tp", Size: 2})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	norm, err := m.Join(ctx, "pp", "tp")
	if err != nil {
		return err
	}
	units := [][]int{{300}, {500}}
	z, err := zero.New[float32, float32](ctx, m.Comm("dp"), units, &zero.Options{Stage: 3, Clip: 1, NormOver: norm})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	group := &tp.Group{Comm: m.Comm("tp")}
	x := make([]float32, 3000) // beyond what a message of a flag holds
	link := m.Comm("pp")
	for {
		step.Add(1)
		if m.Coord("pp") == 1 {
			if err := ccl.Recv(ctx, link, x, 0); err != nil {
				return err
			}
		}
		for i := range units {
			if _, err := z.Params(ctx, i); err != nil {
				return err
			}
			if _, err := tp.Leave(ctx, group, x, x); err != nil {
				return err
			}
			z.Release(i)
		}
		if m.Coord("pp") == 0 {
			err = errors.Join(ccl.Send(ctx, link, x, 1), ccl.Recv(ctx, link, x, 1))
		} else {
			err = ccl.Send(ctx, link, x, 0)
		}
		for i := len(units) - 1; i >= 0 && err == nil; i-- {
			if _, err := z.Params(ctx, i); err != nil {
				return err
			}
			g, err := z.Grads(ctx, i)
			if err != nil {
				return err
			}
			g[0][0] = 1
			z.Release(i)
			if err := z.Reduce(i); err != nil {
				return err
			}
		}
		if err == nil {
			err = z.Step(ctx, func(_ zero.Piece, w, g []float32) error { return nil })
		}
		if err != nil {
			return err
		}
	}
}

// A rank is killed at every call of a step in turn: as it gathers, reduces, sums the norm, exchanges over tp, sends and
// receives. All others return, with an error that names it as a rank of the job, and nothing is left running.
func TestLostRankInEveryPhase(t *testing.T) {
	const (
		lost     = 5
		first    = 110 // in the third step or so
		window   = 20  // more than the calls of a step
		promised = 200 * time.Millisecond
	)
	before := runtime.NumGoroutine()
	stride := 1
	if testing.Short() {
		stride = 4
	}
	var steps []int32
	for call := first; call < first+window; call += stride {
		opts := []ccltest.Option{ccltest.Kill(lost, call)}
		if call%3 == 0 {
			opts = append(opts, ccltest.Hosts(2))
		}
		var at atomic.Int32
		var died atomic.Int64
		ccltest.Run(t, 8, func(t testing.TB, c *ccl.Comm) {
			var step atomic.Int32
			if c.Rank() == lost {
				defer func() {
					died.Store(time.Now().UnixNano())
					at.Store(step.Load())
				}()
			}
			err := cubeLoop(t.Context(), c, &step)
			if c.Rank() == lost {
				return
			}
			require.Error(t, err)
			var e *ccl.Error
			require.ErrorAs(t, err, &e)
			named := e.Code == ccl.ErrRankLost && (e.World == nil && e.Peer == lost || e.World != nil && e.World[e.Peer] == lost)
			if !named {
				require.Contains(t, err.Error(), fmt.Sprintf("world rank %d lost", lost), "killed at call %d", call)
			}
			if d := died.Load(); d != 0 {
				require.Less(t, time.Since(time.Unix(0, d)), 10*promised)
			}
		}, opts...)
		steps = append(steps, at.Load())
	}
	require.Greater(t, steps[0], int32(1), "killed before the loop: %v", steps)
	require.Greater(t, steps[len(steps)-1], steps[0], "a step has more calls than were tried: %v", steps)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	buf := make([]byte, 1<<20)
	stacks := string(buf[:runtime.Stack(buf, true)])
	require.LessOrEqual(t, strings.Count(stacks, "goroutine "), before, stacks)
}
