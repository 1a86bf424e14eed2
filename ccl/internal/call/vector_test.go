package call

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

// The parts of a vector, one behind another, are the vector.
func TestVectorParts(t *testing.T) {
	mem := make([]byte, 1000)
	for i := range mem {
		mem[i] = byte(i)
	}
	for _, tc := range []struct {
		name  string
		v     Vector
		parts [][2]int // from, to
	}{
		{"whole cache lines", Even(mem, 3), [][2]int{{0, 384}, {384, 768}, {768, 1000}}},
		{"more parts than bytes", Even(mem[:2], 3), [][2]int{{0, 2}, {2, 2}, {2, 2}}},
		{"nothing", Even(mem[:0], 2), [][2]int{{0, 0}, {0, 0}}},
		{"blocks of their own sizes", Vector{Mem: mem, Offsets: []int{0, 10, 10, 1000}}, [][2]int{{0, 10}, {10, 10}, {10, 1000}}},
		{"a slice of each block", Vector{Mem: mem, Size: 8, Stride: 100, From: 4}, [][2]int{{4, 12}, {104, 112}, {204, 212}}},
	} {
		for p, at := range tc.parts {
			require.Equal(t, mem[at[0]:at[1]:at[1]], tc.v.Parts(p, p+1)[:at[1]-at[0]:at[1]-at[0]], "%s, part %d", tc.name, p)
			require.Len(t, tc.v.Parts(p, p+1), at[1]-at[0], "%s, part %d", tc.name, p)
		}
	}
	whole := Even(mem, 3)
	require.Equal(t, mem, whole.Parts(0, 3))
}

// In place, what goes is copied: what comes would replace it.
func TestBlocksInPlace(t *testing.T) {
	mem := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	k := &Call{Head: op.Head{Record: Record{Kind: AllToAllV}}, Dst: mem, Src: mem, SC: []int{2, 6}, DC: []int{5, 3}, Elem: 1}
	var w Workspace
	var out, in Vector
	w.BlocksV(k, &out, &in)
	copy(in.Parts(0, 1), []byte{9, 9, 9, 9, 9})
	require.Equal(t, []byte{1, 2}, out.Parts(0, 1))
	require.Equal(t, []byte{3, 4, 5, 6, 7, 8}, out.Parts(1, 2))
	require.Equal(t, []byte{9, 9, 9, 9, 9, 6, 7, 8}, mem)
	require.Zero(t, testing.AllocsPerRun(10, func() { w.BlocksV(k, &out, &in) }))
}
