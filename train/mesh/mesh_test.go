package mesh_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/mesh"
)

// ranksOf are the ranks of the job in c, in c's order.
func ranksOf(t testing.TB, world, c *ccl.Comm) []int {
	all := make([]int, c.Size())
	require.NoError(t, ccl.AllGather(t.Context(), c, all, []int{world.Rank()}))
	return all
}

func TestMesh(t *testing.T) {
	for _, tc := range []struct {
		name string
		n    int
		dims []mesh.Dim
		opts []ccltest.Option
		text string // of the last rank
	}{
		{"1", 1, []mesh.Dim{{"dp", 0}, {"tp", 1}}, nil, "dp=1 tp=1, rank 0 = (0,0)"},
		{"3", 3, []mesh.Dim{{"dp", 0}}, nil, "dp=3, rank 2 = (2)"},
		{"2x3", 6, []mesh.Dim{{"dp", 2}, {"tp", 0}}, nil, "dp=2 tp=3, rank 5 = (1,2)"},
		{"2x2x2", 8, []mesh.Dim{{"dp", 2}, {"pp", 2}, {"tp", 2}}, nil, "dp=2 pp=2 tp=2, rank 7 = (1,1,1)"},
		{"2x1x2, processes", 4, []mesh.Dim{{"dp", 0}, {"pp", 1}, {"tp", 2}}, []ccltest.Option{ccltest.Processes(4)}, "dp=2 pp=1 tp=2, rank 3 = (1,0,1)"},
		{"2x2x1x2, hosts", 8, []mesh.Dim{{"dp", 2}, {"pp", 0}, {"sp", 1}, {"tp", 2}}, []ccltest.Option{ccltest.Hosts(2)}, "dp=2 pp=2 sp=1 tp=2, rank 7 = (1,1,0,1)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ccltest.Run(t, tc.n, func(t testing.TB, c *ccl.Comm) {
				m := newMesh(t, c, tc.dims...)
				require.Same(t, c, m.World())
				for r := range tc.n {
					require.Equal(t, r, m.Rank(m.Coords(r)...))
				}
				for i, d := range m.Dims() {
					var want []int // the ranks that differ in this dimension alone
					for r := range tc.n {
						at := m.Coords(r)
						at[i] = m.Coord(d.Name)
						if m.Rank(at...) == c.Rank() {
							want = append(want, r)
						}
					}
					require.Equal(t, d.Size, m.Size(d.Name))
					require.Equal(t, want, ranksOf(t, c, m.Comm(d.Name)), d.Name)
					require.Equal(t, m.Coord(d.Name), m.Comm(d.Name).Rank())
				}
				require.Equal(t, 1, m.Size("ep"))
				require.Zero(t, m.Coord("ep"))
				require.Equal(t, []int{c.Rank()}, ranksOf(t, c, m.Comm("dp"))[m.Coord("dp"):m.Coord("dp")+1])
				if c.Rank() == tc.n-1 {
					require.Equal(t, tc.text, m.String())
				}
			}, tc.opts...)
		})
	}
}

func TestNames(t *testing.T) {
	ccltest.Run(t, 8, func(t testing.TB, c *ccl.Comm) {
		m := newMesh(t, c, mesh.Dim{Name: "dp"}, mesh.Dim{"pp", 2}, mesh.Dim{"sp", 1}, mesh.Dim{"tp", 2})
		require.Equal(t, fmt.Sprintf("tp of dp=%d pp=%d", m.Coord("dp"), m.Coord("pp")), m.Comm("tp").Name())
		j, err := m.Join(t.Context(), "tp", "dp")
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("dp x tp of pp=%d", m.Coord("pp")), j.Name())
	})
}

func TestJoin(t *testing.T) {
	ccltest.Run(t, 8, func(t testing.TB, c *ccl.Comm) {
		m := newMesh(t, c, mesh.Dim{"dp", 2}, mesh.Dim{"pp", 2}, mesh.Dim{"sp", 1}, mesh.Dim{"tp", 2})
		want := [][]int{{0, 1, 4, 5}, {2, 3, 6, 7}}[m.Coord("pp")]
		j, err := m.Join(t.Context(), "tp", "sp", "dp")
		require.NoError(t, err)
		require.Equal(t, want, ranksOf(t, c, j))
		again, err := m.Join(t.Context(), "dp", "tp")
		require.NoError(t, err)
		require.Same(t, j, again)
		one, err := m.Join(t.Context(), "dp", "sp", "ep")
		require.NoError(t, err)
		require.Same(t, m.Comm("dp"), one)
		alone, err := m.Join(t.Context(), "sp")
		require.NoError(t, err)
		require.Equal(t, 1, alone.Size())
		all, err := m.Join(t.Context(), "dp", "pp", "tp")
		require.NoError(t, err)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, ranksOf(t, c, all))

		_, err = m.Join(t.Context())
		require.EqualError(t, err, "mesh: Join of no dimension")
		_, err = m.Join(t.Context(), "dp", "dp")
		require.EqualError(t, err, "mesh: Join: dimension dp is named twice")
		_, err = m.Join(t.Context(), "pp", []string{"tp", "dp"}[c.Rank()/7])
		require.EqualError(t, err, "mesh: ranks differ: rank 0 has Join of pp, tp, rank 7 has Join of pp, dp")
		require.NoError(t, m.Close())
		_, err = m.Join(t.Context(), "dp", "tp")
		require.EqualError(t, err, "mesh: Join: the mesh is closed")
	})
}

func TestBadDims(t *testing.T) {
	type dims = []mesh.Dim
	for _, tc := range []struct {
		dims  dims
		other dims // of rank 3; nil: the same
		text  string
	}{
		{dims{}, nil, "mesh: 0 dimensions; a mesh has 1 to 32"},
		{dims{{"dp", 3}, {"tp", 2}}, nil, "mesh: dp=3 tp=2 does not multiply to the 4 ranks of the Comm; leave one size open, as 0"},
		{dims{{"dp", 2}, {"tp", 1}}, nil, "mesh: dp=2 tp=1 does not multiply to the 4 ranks of the Comm; leave one size open, as 0"},
		{dims{{"dp", 1 << 62}, {"tp", 4}}, nil, "mesh: dp=4611686018427387904 tp=4 does not multiply to the 4 ranks of the Comm; leave one size open, as 0"},
		{dims{{"dp", 0}, {"tp", 3}}, nil, "mesh: dp=0 tp=3 does not divide the 4 ranks; the sizes must multiply to a divisor of them"},
		{dims{{"dp", 0}, {"tp", 0}}, nil, "mesh: dimensions dp and tp are both open; give one of them a size"},
		{dims{{"dp", 2}, {"dp", 2}}, nil, "mesh: two dimensions are named dp"},
		{dims{{"", 4}}, nil, "mesh: dimension 0 has no name"},
		{dims{{"d p", 4}}, nil, `mesh: dimension "d p": a name has no comma, space or equals sign`},
		{dims{{"dp", -4}}, nil, "mesh: dimension dp has size -4; 0 means what the others leave over"},
		{dims{{"dp", 4}}, dims{{"dp", 5}}, "mesh: rank 3: dp=5 does not multiply to the 4 ranks of the Comm; leave one size open, as 0"},
		{dims{{"dp", 4}}, dims{{"tp", 4}}, "mesh: ranks differ: rank 0 has dp=4, rank 3 has tp=4"},
		{dims{{"dp", 2}, {"tp", 2}}, dims{{"dp", 2}, {"tp", 2}, {"sp", 1}}, "mesh: ranks differ: rank 0 has no more, rank 3 has sp=1"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
				mine := tc.dims
				if c.Rank() == 3 && tc.other != nil {
					mine = tc.other
				}
				_, err := mesh.New(t.Context(), c, mine...)
				require.EqualError(t, err, tc.text)
				require.NoError(t, ccl.Barrier(t.Context(), c), "the Comm is fine")
			})
		})
	}
	_, err := mesh.New(t.Context(), nil, mesh.Dim{"dp", 1})
	require.EqualError(t, err, "mesh: the Comm is nil")
}

func TestCoordsOutOfRange(t *testing.T) {
	ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
		m := newMesh(t, c, mesh.Dim{"dp", 2}, mesh.Dim{"tp", 2})
		require.Nil(t, m.Coords(4))
		require.Nil(t, m.Coords(-1))
		require.Equal(t, -1, m.Rank(0))
		require.Equal(t, -1, m.Rank(0, 2))
		require.Equal(t, -1, m.Rank(-1, 0))
	})
}

// A mesh takes one Split for each dimension with several coordinates, and one for all others together.
func TestSplits(t *testing.T) {
	for _, tc := range []struct {
		dims []mesh.Dim
		want int
	}{
		{[]mesh.Dim{{"dp", 8}}, 1},
		{[]mesh.Dim{{"dp", 2}, {"pp", 2}, {"tp", 2}}, 3},
		{[]mesh.Dim{{"dp", 2}, {"pp", 1}, {"sp", 1}, {"tp", 4}}, 3},
	} {
		ccltest.Run(t, 8, func(t testing.TB, c *ccl.Comm) {
			m, err := mesh.New(t.Context(), c, tc.dims...)
			require.NoError(t, err)
			splits := 0
			for call := range c.Trace() {
				if call.Kind == ccl.KindSplit {
					splits++
				}
			}
			require.Equal(t, tc.want, splits, "%v", tc.dims)
			require.NoError(t, m.Close())
		})
	}
}

func TestCrosses(t *testing.T) {
	for k, want := range map[int][3]bool{1: {}, 2: {true, false, false}, 4: {true, true, false}, 8: {true, true, true}} {
		ccltest.Run(t, 8, func(t testing.TB, c *ccl.Comm) {
			m := newMesh(t, c, mesh.Dim{"dp", 2}, mesh.Dim{"pp", 2}, mesh.Dim{"tp", 2})
			require.Equal(t, want, [3]bool{m.Crosses("dp"), m.Crosses("pp"), m.Crosses("tp")}, "%d hosts", k)
			require.False(t, m.Crosses("sp"))
		}, ccltest.Hosts(k))
	}
}

// Each dimension has its own Options, and so has what Join makes.
func TestNewWith(t *testing.T) {
	var mu sync.Mutex
	calls := map[string]int{}
	set := func(o *ccl.Options, dims ...string) {
		if slices.Contains(dims, "tp") {
			return
		}
		name := strings.Join(dims, " and ")
		o.OnCall = func(ccl.Observation) {
			mu.Lock()
			defer mu.Unlock()
			calls[name]++
		}
	}
	ccltest.Run(t, 8, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		m, err := mesh.NewWith(ctx, c, set, mesh.Dim{"dp", 2}, mesh.Dim{"sp", 2}, mesh.Dim{"tp", 2})
		require.NoError(t, err)
		defer m.Close()
		both, err := m.Join(ctx, "dp", "sp")
		require.NoError(t, err)
		for _, x := range []*ccl.Comm{both, m.Comm("dp"), m.Comm("tp"), m.Comm("dp")} {
			require.NoError(t, ccl.Barrier(ctx, x))
		}
	})
	require.Equal(t, map[string]int{"dp and sp": 8, "dp": 16}, calls)

	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		_, err := mesh.NewWith(ctx, c, func(o *ccl.Options, _ ...string) { o.PeerTimeout = time.Hour }, mesh.Dim{"dp", 2})
		require.ErrorContains(t, err, "mesh: dp: ")
		require.ErrorContains(t, err, "on rank 0: Options.PeerTimeout belongs to the whole job")
		_, err = mesh.NewWith(ctx, c, func(o *ccl.Options, _ ...string) { o.RankOrder = c.Rank() == 0 }, mesh.Dim{"dp", 2})
		require.ErrorContains(t, err, "have set different Options.RankOrder")
		set := func(*ccl.Options, ...string) {}
		if c.Rank() == 1 {
			set = nil
		}
		_, err = mesh.NewWith(ctx, c, set, mesh.Dim{"dp", 2})
		require.EqualError(t, err, "mesh: ranks differ: rank 0 has options by dimension, rank 1 has no more")
		require.NoError(t, ccl.Barrier(ctx, c))
	})
}
