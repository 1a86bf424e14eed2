package mpi_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/emer/empi/mpi"
)

func init() {
	scenes["collectives"] = joined(func(c *mpi.Comm) error {
		r, n := c.Rank(), c.Size() // of 3
		f := float32(r + 1)

		inPlace := []float32{f, 2 * f}
		sum, long := make([]float32, 2), []float32{f, -f, 99}
		last := []int8{int8(r), -1}
		rows := make([]float64, 2*n)
		strings := make([]uint8, n+1) // longer than it need be
		part := make([]int, 2)
		var whole, sums []int
		if r == 1 {
			whole, sums = []int{0, 1, 2, 3, 4, 5}, make([]int, 2)
		}
		var gathered []uint16
		if r == 2 {
			gathered = make([]uint16, n)
		}
		err := all(
			same(c.AllReduceF32(mpi.OpSum, inPlace, nil), inPlace, []float32{6, 12}),
			same(c.AllReduceF32(mpi.OpSum, sum, long), sum, []float32{6, -6}),
			same(c.AllReduceF32(mpi.OpProd, sum, long), sum, []float32{6, -6}),
			same(c.BcastI8(2, last), last, []int8{2, -1}),
			same(c.AllGatherF64(rows, []float64{float64(r), 0.5}), rows, []float64{0, 0.5, 1, 0.5, 2, 0.5}),
			same(c.AllGatherU8(strings, []uint8{'a' + uint8(r)}), string(strings), "abc\x00"),
			same(c.ScatterInt(1, part, whole), part, []int{2 * r, 2*r + 1}),
			same(c.ReduceInt(1, mpi.OpMax, sums, []int{r, -r}), sums, [][]int{nil, {2, 0}, nil}[r]),
			same(c.ReduceInt(1, mpi.OpBOR, sums, []int{1 << r, 0}), sums, [][]int{nil, {7, 0}, nil}[r]),
			same(c.GatherU16(2, gathered, []uint16{uint16(r)}), gathered, [][]uint16{nil, nil, {0, 1, 2}}[r]),
			same(c.AllReduceI64(mpi.OpSum, nil, nil), 0, 0),
		)

		z, w := []complex64{complex(f, 1)}, make([]complex128, n)
		return all(err,
			same(c.AllReduceC64(mpi.OpSum, z, nil), z, []complex64{complex(6, 3)}),
			same(c.AllGatherC128(w, []complex128{complex(0, float64(r))}), w, []complex128{0, 1i, 2i}),
			fails(c.AllReduceC128(mpi.OpProd, w, nil), "mpi: AllReduceC128: OpProd of complex numbers: unsupported operation: only OpSum is"),
			fails(c.ReduceC64(0, mpi.Op(99), z, z), "mpi: ReduceC64: Op(99) of complex numbers"),
		)
	})
	scenes["alone"] = joined(func(c *mpi.Comm) error {
		x, sum := []float32{1, 2}, make([]float32, 2)
		return all(
			same(nil, []int{c.Rank(), c.Size(), mpi.WorldRank(), mpi.WorldSize()}, []int{0, 1, 0, 1}),
			same(c.AllReduceF32(mpi.OpSum, sum, x), sum, x),
			same(nil, testing.AllocsPerRun(100, func() { c.AllReduceF32(mpi.OpSum, sum, nil) }), 0))
	})
	scenes["operations"] = joined(func(c *mpi.Comm) error {
		var err error
		for _, tc := range []struct {
			op   mpi.Op
			want []int32
		}{
			{mpi.OpSum, []int32{3, 3, 0}},
			{mpi.OpMax, []int32{2, 6, 0}},
			{mpi.OpMin, []int32{0, -4, 0}},
			{mpi.OpProd, []int32{0, -24, 0}},
			{mpi.OpLAND, []int32{0, 1, 0}},
			{mpi.OpLOR, []int32{1, 1, 0}},
			{mpi.OpBAND, []int32{0, 0, 0}},
			{mpi.OpBOR, []int32{3, -1, 0}},
		} {
			mine := []int32{int32(c.Rank()), [...]int32{1, 6, -4}[c.Rank()], 0}
			got := make([]int32, 3)
			err = all(err, same(c.AllReduceI32(tc.op, got, mine), got, tc.want),
				same(c.AllReduceI32(tc.op, mine, nil), mine, tc.want))
		}
		x := []float64{1}
		return all(err, fails(c.AllReduceF64(mpi.OpLAND, x, nil), "mpi: AllReduceF64: OpLAND of float64: it is for integers"),
			fails(c.AllReduceF64(mpi.Op(-1), x, nil), "mpi: AllReduceF64: Op(-1): no such operation"),
			fails(c.ReduceF64(3, mpi.OpSum, x, x), "mpi: ReduceF64: root 3 of 3 ranks"))
	})
}

func TestCollectives(t *testing.T) {
	out, err := played(t, "collectives", 3)
	require.NoError(t, err, out)
}

func TestOperations(t *testing.T) {
	out, err := played(t, "operations", 3)
	require.NoError(t, err, out)
}

// Without a launcher a job is of one rank. Its calls allocate nothing.
func TestAlone(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "EMPI_SCENE=alone")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}
