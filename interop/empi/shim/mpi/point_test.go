package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/emer/empi/mpi"
)

func init() {
	scenes["messages"] = joined(func(c *mpi.Comm) error {
		if c.Rank() == 0 {
			return all(
				c.SendF64(1, 5, []float64{1, 2}),
				c.SendI8(1, 6, []int8{3}),
				c.SendI8(1, 5, []int8{4, 5, 6}),
				c.SendC64(1, 7, []complex64{1i}),
				c.SendF32(1, 8, nil),
				c.SendU8(1, 9, []uint8{1, 2, 3}),
				c.SendU8(1, 10, []uint8{1, 2, 3}),
				c.Barrier())
		}
		f, i, z, own := make([]float64, 3), make([]int8, 3), make([]complex64, 1), make([]int, 1)
		return all(
			same(c.RecvC64(0, 7, z), z, []complex64{1i}), // the last first
			same(c.RecvI8(0, 6, i[:1]), i, []int8{3, 0, 0}),
			same(c.RecvF64(0, 5, f), f, []float64{1, 2, 0}), // room for more
			same(c.RecvI8(0, 5, i), i, []int8{4, 5, 6}),
			c.RecvF32(0, 8, nil),
			fails(c.RecvU8(0, 9, make([]uint8, 2)), "mpi: RecvU8: message truncated: rank 0 sent 3 bytes with tag 9, and there is room for 2"),
			same(c.RecvI8(0, 10, i), i, []int8{1, 2, 3}), // that one is gone
			c.SendInt(1, 0, []int{8}),
			same(c.RecvInt(1, 0, own), own, []int{8}),
			fails(c.RecvInt(1, 0, own), "mpi: RecvInt: nothing with tag 0 was sent to oneself"),
			fails(c.RecvInt(0, -1, own), "mpi: RecvInt: tag -1: tags are from 0"),
			fails(c.SendInt(2, 1, own), "mpi: SendInt: ccl: rank 1: "),
			c.Barrier())
	})
}

func TestMessages(t *testing.T) {
	out, err := played(t, "messages", 2)
	require.NoError(t, err, out)
}
