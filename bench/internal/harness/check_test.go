package harness

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/ccl"
)

// One wrong element is found in each operation, out of place and in place, wherever it lies: in the result of a rank, or in
// what was to stay as it is of its input. TestBarrierThatDoesNothing is for barriers.
func TestPlantedErrors(t *testing.T) {
	const ranks, victim = 3, 1
	for _, name := range coll.Names() {
		for _, inPlace := range []bool{false, true} {
			for _, input := range []bool{false, true} {
				for root := range 2 { // the victim, and another
					planted := 0
					ready(t, ranks, options(t, "-op", name), func(s *session) error {
						c := coll.Named[float32](name)
						run, at := c.Run, -1
						c.Run = func(ctx context.Context, comm *ccl.Comm, sh coll.Shape, dst, src []float32, op ccl.Op) error {
							err := run(ctx, comm, sh, dst, src, op)
							if comm.Rank() != victim {
								return err
							}
							first, parts := 0, [][]float32{dst}
							if input {
								parts = nil
								for _, rest := range outside(src, dst) {
									parts = append(parts, src[rest.from:rest.to])
									first = rest.from
								}
							}
							if last := parts[len(parts)-1]; len(last) > 0 {
								i := rand.IntN(len(last))
								last[i] += 3
								at = first + i
							}
							return err
						}
						f := new(findings)
						e := extentOf(s, c, 96)
						if err := newTest(s, s.ctx, s.lanes[0], c, ccl.Sum, root, e.count, e.room, inPlace).check(f); err != nil {
							return err
						}
						switch {
						case at < 0:
							require.Zero(t, f.wrong, "%s in place %t, rank %d", name, inPlace, s.world.Rank())
						default:
							planted++
							require.Equal(t, 1, f.wrong, "%s in place %t, root %d, input %t", name, inPlace, root, input)
							require.Equal(t, at, f.first.Index)
							require.Equal(t, input, f.first.Input)
						}
						return nil
					}).ok(t)
					require.Equal(t, expected(name, inPlace, input, root == victim), planted > 0, "%s in place %t, root %d, input %t", name, inPlace, root, input)
				}
			}
		}
	}
}

// expected reports whether a rank of an operation has a result, or an input that is to stay, so that it can be wrong.
func expected(name string, inPlace, input, root bool) bool {
	switch name {
	case "barrier":
		return false
	case "broadcast":
		return input == root
	case "reduce", "gather":
		return !input && root || input && !(root && inPlace)
	case "scatter":
		return !input || root
	case "reducescatter":
		return true
	}
	return !input || !inPlace
}

func TestOutside(t *testing.T) {
	memory := make([]float64, 10)
	for _, tc := range []struct {
		src, dst []float64
		want     []span
	}{
		{memory[:4], memory[6:], []span{{0, 4}}},
		{memory[6:], memory[:6], []span{{0, 4}}},
		{memory, memory[2:5], []span{{0, 2}, {5, 10}}},
		{memory[2:5], memory, []span{{0, 0}, {3, 3}}},
		{memory, memory, []span{{0, 0}, {10, 10}}},
		{memory[:3], nil, []span{{0, 3}}},
		{nil, memory, []span{{0, 0}}},
		{memory[:3], make([]float64, 3), []span{{0, 3}}},
	} {
		require.Equal(t, tc.want, outside(tc.src, tc.dst))
	}
}
