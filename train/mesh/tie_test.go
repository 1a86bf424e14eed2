package mesh_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/mesh"
)

// newMesh is a mesh that the end of the rank closes.
func newMesh(t testing.TB, c *ccl.Comm, dims ...mesh.Dim) *mesh.Mesh {
	m, err := mesh.New(t.Context(), c, dims...)
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

// cube is a mesh of 2 x 2 x 2.
func cube(t testing.TB, c *ccl.Comm) *mesh.Mesh { return newMesh(t, c, cubeDims...) }

var cubeDims = []mesh.Dim{{"dp", 2}, {"pp", 2}, {"tp", 2}}

// meet returns on a rank once all others have done what comes before it, so that a failure after it ends none of that. On
// the others it may be what that failure ends.
func meet(t testing.TB, c *ccl.Comm) error { return ccl.Barrier(t.Context(), c) }

// promised is within how much time all ranks have the error; the tests allow ten times as much.
const promised = 200 * time.Millisecond

// A rank calls on one dimension alone, so seven of eight wait on Comms that the one that aborts does not have.
func TestTogether(t *testing.T) {
	for _, opts := range [][]ccltest.Option{nil, {ccltest.Processes(4)}, {ccltest.Hosts(2)}, {ccltest.Processes(4), ccltest.Hosts(2)}} {
		ccltest.Run(t, 8, func(t testing.TB, c *ccl.Comm) {
			m := cube(t, c)
			err := meet(t, c)
			if c.Rank() == 5 {
				m.Comm("tp").Abort(errors.New("the loss is NaN on world rank 5"))
				<-c.Done()
				return
			}
			began := time.Now()
			if err == nil {
				err = ccl.Barrier(t.Context(), m.Comm([]string{"dp", "pp", "tp"}[c.Rank()%3]))
			}
			for err == nil { // a Comm all of whose ranks have called
				err = ccl.Barrier(t.Context(), m.Comm("tp"))
			}
			require.Less(t, time.Since(began), 10*promised)
			require.ErrorIs(t, err, ccl.ErrAborted)
			require.ErrorContains(t, err, "the loss is NaN on world rank 5")
			for _, d := range []string{"dp", "pp", "tp"} {
				<-m.Comm(d).Done()
				require.ErrorContains(t, m.Comm(d).Err(), "the loss is NaN on world rank 5")
			}
			<-c.Done()
			require.ErrorContains(t, c.Err(), "the loss is NaN on world rank 5")
		}, opts...)
	}
}

// A lost rank is named as a rank of the job on Comms that do not have it.
func TestLostRankOfAnotherComm(t *testing.T) {
	const calls = 60 // about: those of New, then a few steps
	for _, opts := range [][]ccltest.Option{nil, {ccltest.Hosts(2)}, {ccltest.Hosts(4)}} {
		ccltest.Run(t, 8, func(t testing.TB, c *ccl.Comm) {
			m := cube(t, c)
			var err error
			for step := 0; err == nil; step++ {
				err = ccl.Barrier(t.Context(), m.Comm([]string{"dp", "pp", "tp"}[step%3]))
			}
			if c.Rank() == 5 {
				return
			}
			var e *ccl.Error
			require.ErrorAs(t, err, &e)
			named := e.Code == ccl.ErrRankLost && (e.World == nil && e.Peer == 5 || e.World != nil && e.World[e.Peer] == 5)
			if !named {
				require.Contains(t, err.Error(), "world rank 5 lost")
			}
			<-c.Done()
			require.ErrorAs(t, c.Err(), &e)
			require.Equal(t, ccl.ErrRankLost, e.Code, "%v", e)
			require.Equal(t, 5, e.Peer)
		}, append(opts, ccltest.Kill(5, calls))...)
	}
}

// A rank that leaves at once does not leave its peers with "closed": they hear the cause.
func TestCloseAfterFailure(t *testing.T) {
	ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
		m := newMesh(t, c, mesh.Dim{"dp", 2}, mesh.Dim{"tp", 2})
		_ = meet(t, c)
		switch c.Rank() {
		case 0:
			m.Comm("tp").Abort(errors.New("a test"))
			require.Error(t, ccl.Barrier(t.Context(), m.Comm("tp")))
			require.NoError(t, m.Close())
		default:
			err := ccl.Barrier(t.Context(), m.Comm("dp"))
			for err == nil {
				err = ccl.Barrier(t.Context(), m.Comm("dp"))
			}
			require.ErrorIs(t, err, ccl.ErrAborted)
			require.ErrorContains(t, err, "a test")
			require.NoError(t, m.Close())
		}
	})
}

func TestUntie(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		a := ccltest.Split(t, c, 0, 0)
		b := ccltest.Split(t, c, 0, 0)
		mesh.Tie(a, b)()
		ccltest.Barrier(t, c)
		a.Abort(errors.New("a test"))
		<-a.Done()
		require.NoError(t, ccl.Barrier(t.Context(), b), "not tied any more")
	})
}

// Two failures that have one cause do not make it longer.
func TestCauseIsNotWrapped(t *testing.T) {
	ccltest.Run(t, 8, func(t testing.TB, c *ccl.Comm) {
		m := cube(t, c)
		_ = meet(t, c)
		if c.Rank() == 0 {
			m.Comm("tp").Abort(errors.New("a test"))
		}
		for _, d := range []string{"dp", "pp", "tp"} {
			<-m.Comm(d).Done()
			var e *ccl.Error
			require.ErrorAs(t, m.Comm(d).Err(), &e)
			require.EqualError(t, e.Err, "a test")
		}
	})
}

func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, fail := range []bool{false, true} {
		ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
			m := newMesh(t, c, mesh.Dim{"dp", 2}, mesh.Dim{"tp", 2})
			_, err := m.Join(t.Context(), "dp", "tp")
			require.NoError(t, err)
			_ = meet(t, c)
			if fail && c.Rank() == 2 {
				m.Comm("dp").Abort(errors.New("a test"))
			}
			if fail {
				<-c.Done()
			}
			require.NoError(t, m.Close())
			require.NoError(t, m.Close())
		})
	}
	var after int
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if after = runtime.NumGoroutine(); after <= before {
			return
		}
	}
	buf := make([]byte, 1<<16)
	t.Fatalf("%d goroutines, %d before\n%s", after, before, buf[:runtime.Stack(buf, true)])
}
