package coll

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	require.Equal(t, []string{"allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall",
		"alltoallv", "gather", "scatter", "sendrecv", "barrier"}, Names())
}

func find(name string) Collective[int32] {
	for _, c := range All[int32]() {
		if c.Name == name {
			return c
		}
	}
	panic(name)
}

func TestElements(t *testing.T) {
	for _, tc := range []struct {
		name               string
		size, elem, ranks  int
		wantCount, wantLen int
	}{
		{"allreduce", 1024, 4, 3, 256, 1024},
		{"allreduce", 1023, 4, 3, 255, 1020},
		{"allgather", 1024, 4, 4, 64, 1024},
		{"allgather", 1024, 4, 3, 85, 1020},
		{"allgather", 8, 4, 3, 0, 0},
		{"alltoall", 1024, 1, 2, 512, 1024},
		{"sendrecv", 1024, 8, 2, 128, 1024},
		{"barrier", 1024, 8, 2, 0, 0},
	} {
		c := find(tc.name)
		count, size := c.Elements(tc.size, tc.elem, tc.ranks)
		require.Equal(t, tc.wantCount, count, tc.name)
		require.Equal(t, tc.wantLen, size, tc.name)
	}
}

// What the busbw document of nccl-tests says of each.
func TestFactor(t *testing.T) {
	for name, want := range map[string]float64{
		"allreduce": 1.5, "allgather": 0.75, "reducescatter": 0.75, "broadcast": 1, "reduce": 1,
		"alltoall": 0.75, "alltoallv": 0.875, "gather": 0.75, "scatter": 0.75, "sendrecv": 1, "barrier": 1,
	} {
		require.InDelta(t, want, find(name).Factor(NewShape(4, 1, 0, 8, nil)), 1e-15, name)
	}
}

// The parts a rank gets add up to its buffer, and each lies within what their rank gave.
func TestWantFits(t *testing.T) {
	for _, c := range All[int32]() {
		for n := 1; n <= 8; n++ {
			for root := range n {
				for r := range n {
					s := NewShape(n, r, root, 5, nil)
					sum := 0
					for _, p := range c.Want(s) {
						sum += p.Len
						from := p.From
						if from < 0 {
							from = r
						}
						require.LessOrEqual(t, p.Off+p.Len, c.Send(NewShape(n, from, root, 5, nil)), c.Name)
					}
					require.Equal(t, c.Recv(s), sum, "%s n=%d rank=%d root=%d", c.Name, n, r, root)
				}
			}
		}
	}
}

func TestUneven(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for r := range n {
			s := NewShape(n, r, 0, 7, nil)
			sum := 0
			for p := range n {
				sum += s.sent[p]
				require.Equal(t, s.sent[p], NewShape(n, p, 0, 7, nil).sent[r], "both sides agree")
			}
			require.Equal(t, 7*n, sum)
		}
	}
	require.Equal(t, []int{6, 4, 2}, NewShape(3, 0, 0, 4, nil).sent)
}

func TestBuffers(t *testing.T) {
	a, b := make([]int32, 12), make([]int32, 12)
	for _, tc := range []struct {
		name       string
		rank       int
		dstAt, dst int // where in a, -1 if in b; length
		srcAt, src int
		inPlace    bool
	}{
		{"allreduce", 1, -1, 4, 0, 4, false},
		{"allreduce", 1, 0, 4, 0, 4, true},
		{"allgather", 2, -1, 12, 0, 4, false},
		{"allgather", 2, 0, 12, 8, 4, true},
		{"reducescatter", 1, 4, 4, 0, 12, true},
		{"gather", 0, 0, 12, 0, 4, true},
		{"scatter", 0, 0, 4, 0, 12, true},
		{"reduce", 0, 0, 4, 0, 4, true},
		{"sendrecv", 0, 0, 4, 0, 4, true},
	} {
		c := find(tc.name)
		dst, src := c.Buffers(NewShape(3, tc.rank, 0, 4, nil), tc.inPlace, a, b)
		require.Len(t, dst, tc.dst, tc.name)
		require.Len(t, src, tc.src, tc.name)
		require.Same(t, &a[tc.srcAt], &src[0], tc.name)
		if tc.dstAt < 0 {
			require.Same(t, &b[0], &dst[0], tc.name)
		} else {
			require.Same(t, &a[tc.dstAt], &dst[0], tc.name)
		}
	}
	// Off the root there is nothing to get.
	c := find("gather")
	dst, src := c.Buffers(NewShape(3, 2, 0, 4, nil), true, a, b)
	require.Empty(t, dst)
	require.Len(t, src, 4)
}
