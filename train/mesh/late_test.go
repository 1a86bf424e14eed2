package mesh_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/mesh"
)

// steps are what the ranks of a cube do in a step.
var steps = map[string]func(ctx context.Context, m *mesh.Mesh) error{
	"tp first": through("tp", "pp", "dp"),
	"dp first": through("dp", "tp", "pp"),
	"pp first": through("pp", "dp", "tp"),
	"queued": func(ctx context.Context, m *mesh.Mesh) error {
		x := make([]float32, 100)
		var last ccl.Work
		for _, d := range []string{"tp", "pp", "dp"} {
			s := ccl.NewHostStream()
			defer s.Close()
			last = m.Comm(d).On(s).AllReduce(ccl.BufOf(x), ccl.BufOf(x), ccl.Sum)
			if err := last.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	},
	"a pipeline": func(ctx context.Context, m *mesh.Mesh) error {
		x := make([]float32, 100)
		if pp := m.Comm("pp"); pp.Rank() == 0 {
			if err := ccl.Send(ctx, pp, x, 1); err != nil {
				return err
			}
		} else if err := ccl.Recv(ctx, pp, x, 0); err != nil {
			return err
		}
		return through("tp", "dp")(ctx, m)
	},
}

func through(dims ...string) func(ctx context.Context, m *mesh.Mesh) error {
	return func(ctx context.Context, m *mesh.Mesh) error {
		for _, d := range dims {
			if err := ccl.Barrier(ctx, m.Comm(d)); err != nil {
				return err
			}
		}
		return nil
	}
}

// leastLimit is long beside the differences between the times at which ranks begin to wait, unless the machine is busy.
const leastLimit = 1500 * time.Millisecond

// limited is a cube whose calls have a limit that is long beside what a step takes now, as the ranks have measured in steps without
// one: a rank that gets no processor is late, too.
func limited(t testing.TB, c *ccl.Comm, step func(ctx context.Context, m *mesh.Mesh) error) *mesh.Mesh {
	free := cube(t, c)
	slowest := []int64{0}
	for range 20 {
		begun := time.Now()
		require.NoError(t, step(t.Context(), free))
		slowest[0] = max(slowest[0], int64(time.Since(begun)))
	}
	require.NoError(t, ccl.AllReduce(t.Context(), c, slowest, slowest, ccl.Max))
	require.NoError(t, free.Close())
	limit := max(leastLimit, 10*time.Duration(slowest[0]))
	m, err := mesh.NewWith(t.Context(), c, func(o *ccl.Options, _ ...string) { o.Timeout = limit }, cubeDims...)
	require.NoError(t, err)
	require.NoError(t, step(t.Context(), m)) // what is made at first use is there
	ccltest.Barrier(t, c)
	return m
}

// A rank that is late for Options.Timeout is the one that all others name, though most of them wait for ranks that wait
// for it in another Comm.
func TestLateRankIsNamed(t *testing.T) {
	const late = 5
	for name, opts := range map[string][]ccltest.Option{"goroutines": nil, "processes": {ccltest.Processes(8)},
		"hosts": {ccltest.Hosts(2)}, "processes of hosts": {ccltest.Processes(4), ccltest.Hosts(2)}} {
		for what, step := range steps {
			most := name == "goroutines" || name == "processes of hosts"
			if what != "tp first" && (!most || testing.Short()) || testing.Short() && strings.HasPrefix(name, "processes") {
				continue
			}
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				ccltest.Run(t, 8, func(t testing.TB, c *ccl.Comm) {
					m := limited(t, c, step)
					defer m.Close()
					if c.Rank() == late {
						<-c.Done()
						return
					}
					requireNamed(t, m, step, late)
				}, opts...)
			})
		}
	}
}

// requireNamed makes steps until one fails, and requires the blame of a rank of the world.
func requireNamed(t testing.TB, m *mesh.Mesh, step func(ctx context.Context, m *mesh.Mesh) error, rank int) {
	var err error
	for err == nil {
		err = step(t.Context(), m)
	}
	require.Equal(t, rank, namedIn(err), "%v", err)
	<-m.World().Done()
	require.Equal(t, rank, namedIn(m.World().Err()), "%v", m.World().Err())
}

// namedIn is the rank of the world that err says is at fault, -1 if none.
func namedIn(err error) int {
	var e *ccl.Error
	if !errors.As(err, &e) {
		return -1
	}
	if e.Err != nil {
		var w int
		if at := strings.Index(e.Err.Error(), "world rank "); at >= 0 {
			if _, err := fmt.Sscanf(e.Err.Error()[at:], "world rank %d", &w); err == nil {
				return w
			}
		}
	}
	if e.Peer >= 0 && e.Peer < len(e.World) {
		return e.World[e.Peer]
	}
	return e.Peer
}
