package zero_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/tp"
	"github.com/goccl/goccl/train/zero"
)

// progress is how far a rank has come.
type progress struct {
	step  atomic.Int32
	phase atomic.Value // a string
}

// cubeLoop trains on 2 x 2 x 2 ranks until something fails: parameters sharded over dp, an exchange over tp in each
// unit, activations sent over pp and their gradients back, the norm over tp and pp, and a checkpoint in dir.
func cubeLoop(ctx context.Context, c *ccl.Comm, dir string, p *progress) (err error) {
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
		step := int(p.step.Add(1))
		if m.Coord("pp") == 1 {
			p.phase.Store("receiving")
			if err := ccl.Recv(ctx, link, x, 0); err != nil {
				return err
			}
		}
		for i := range units {
			p.phase.Store("gathering")
			if _, err := z.Params(ctx, i); err != nil {
				return err
			}
			p.phase.Store("exchanging")
			if _, err := tp.Leave(ctx, group, x, x); err != nil {
				return err
			}
			z.Release(i)
		}
		p.phase.Store("sending")
		if m.Coord("pp") == 0 {
			if err = ccl.Send(ctx, link, x, 1); err == nil {
				p.phase.Store("receiving")
				err = ccl.Recv(ctx, link, x, 1)
			}
		} else {
			err = ccl.Send(ctx, link, x, 0)
		}
		for i := len(units) - 1; i >= 0 && err == nil; i-- {
			p.phase.Store("gathering")
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
			p.phase.Store("in Step")
			err = z.Step(ctx, func(_ zero.Piece, w, g []float32) error { return nil })
		}
		if err == nil {
			p.phase.Store("in Save")
			var ts []ckpt.Tensor
			for i := range units {
				for _, piece := range z.Pieces(i) {
					ts = append(ts, ckpt.Tensor{Name: fmt.Sprint(i, m.Coord("pp"), m.Coord("tp")), Shape: units[i], Lo: piece.Lo, Hi: piece.Hi,
						Data: z.Shard(i)[piece.At : piece.At+piece.Hi-piece.Lo]})
				}
			}
			err = ckpt.Save(ctx, c, ckpt.Step(dir, step), step, ts)
		}
		if err != nil {
			return err
		}
	}
}

const (
	lost      = 5   // the rank that is killed: dp 1, pp 0, tp 1
	firstCall = 113 // of those it is killed at: in the third step or so
	window    = 40  // more than the calls of a step
	promised  = 200 * time.Millisecond
)

// sharedDir is a directory for the processes of a test's ranks, which run this, too. It goes when all of them have ended.
func sharedDir(t *testing.T) string {
	const where = "GOCCL_ZERO_TEST_DIR"
	dir := os.Getenv(where)
	if dir == "" {
		dir = t.TempDir()
		t.Setenv(where, dir)
	}
	return dir
}

// survive runs cubeLoop until rank lost is killed, and requires of the others that they name it, as a rank of the job, soon.
func survive(t testing.TB, c *ccl.Comm, dir string, p *progress) (took time.Duration) {
	died := filepath.Join(dir, "died")
	if c.Rank() == lost {
		defer func() { _ = os.WriteFile(died, strconv.AppendInt(nil, time.Now().UnixNano(), 10), 0o600) }()
	}
	err := cubeLoop(t.Context(), c, dir, p)
	if c.Rank() == lost {
		return 0
	}
	require.Error(t, err)
	var e *ccl.Error
	require.ErrorAs(t, err, &e)
	named := e.Code == ccl.ErrRankLost && (e.World == nil && e.Peer == lost || e.World != nil && e.World[e.Peer] == lost)
	if !named {
		require.Contains(t, err.Error(), fmt.Sprintf("world rank %d lost", lost))
	}
	if b, err := os.ReadFile(died); err == nil {
		if at, err := strconv.ParseInt(string(b), 10, 64); err == nil {
			took = time.Since(time.Unix(0, at))
			require.Less(t, took, 10*promised)
		}
	}
	return took
}

// mapped is how many pieces of shared memory this process has mapped; 0 where only Linux could tell.
func mapped() int {
	b, _ := os.ReadFile("/proc/self/maps")
	return strings.Count(string(b), "/memfd:")
}

// heap is the size of what is in use.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A rank is killed at every call of a step in turn: as it gathers, reduces, sums the norm, exchanges over tp, sends,
// receives and saves. All others return, with an error that names it as a rank of the job, and nothing is left: no
// goroutine and no memory.
func TestLostRankInEveryPhase(t *testing.T) {
	before := runtime.NumGoroutine()
	stride := 1
	if testing.Short() {
		stride = 7
	}
	var mu sync.Mutex
	phases, steps, worst := map[string]int{}, []int32(nil), time.Duration(0)
	// A queued call of the rank that is killed fails, and it finds out later.
	queued := func(o ccl.Observation) {
		var e *ccl.Error
		if errors.As(o.Err, &e) && e.Code == ccl.ErrRankLost && e.World != nil && e.World[e.Rank] == lost && e.Peer == e.Rank {
			mu.Lock()
			defer mu.Unlock()
			phases["in a queued "+o.Call.Kind.String()]++
		}
	}
	held, maps := 0, 0
	for call := firstCall; call < firstCall+window; call += stride {
		dir := t.TempDir()
		opts := []ccltest.Option{ccltest.Kill(lost, call), ccltest.With(ccl.Options{OnCall: queued})}
		if call%3 == 0 {
			opts = append(opts, ccltest.Hosts(2))
		}
		ccltest.Run(t, 8, func(t testing.TB, c *ccl.Comm) {
			p := &progress{}
			if c.Rank() == lost {
				defer func() { // though it is killed
					mu.Lock()
					defer mu.Unlock()
					steps = append(steps, p.step.Load())
					phases[fmt.Sprint(p.phase.Load())]++
				}()
			}
			took := survive(t, c, dir, p)
			mu.Lock()
			defer mu.Unlock()
			worst = max(worst, took)
		}, opts...)
		if call == firstCall {
			held, maps = heap(), mapped()
		}
	}
	t.Logf("%v after the end of the rank at the latest; it was %v", worst, phases)
	require.Greater(t, steps[0], int32(1), "killed before the loop: %v", steps)
	require.Greater(t, steps[len(steps)-1], steps[0], "a step has more calls than were tried: %v", steps)
	if stride == 1 {
		for _, phase := range []string{"sending", "receiving", "exchanging", "in Step", "in Save", "in a queued AllGather", "in a queued ReduceScatter"} {
			require.NotZero(t, phases[phase], "%s: %v", phase, phases)
		}
	}
	require.Eventually(t, func() bool { return mapped() <= maps && heap() < held+1<<20 }, 20*time.Second, 10*time.Millisecond, "memory is left")
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	buf := make([]byte, 1<<20)
	stacks := string(buf[:runtime.Stack(buf, true)])
	require.LessOrEqual(t, strings.Count(stacks, "goroutine "), before, stacks)
}

// So it is where each rank is a process.
func TestLostProcess(t *testing.T) {
	stride := 5
	if testing.Short() {
		stride = window
	}
	for call := firstCall; call < firstCall+window; call += stride {
		for name, opts := range map[string][]ccltest.Option{"one host": nil, "two hosts": {ccltest.Hosts(2)}} {
			if name != "one host" && call%2 == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s, call %d", name, call), func(t *testing.T) {
				dir := sharedDir(t)
				ccltest.Run(t, 8, func(t testing.TB, c *ccl.Comm) { survive(t, c, dir, &progress{}) },
					append(opts, ccltest.Processes(8), ccltest.Kill(lost, call))...)
			})
		}
	}
}
