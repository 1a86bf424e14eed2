package verify

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

var allTypes = func() (ts []ccl.Type) {
	for t := ccl.TypeInt8; t <= ccl.TypeFloat8E5M2; t++ {
		ts = append(ts, t)
	}
	return ts
}()

var allOps = []ccl.Op{ccl.Sum, ccl.Prod, ccl.Min, ccl.Max, ccl.Avg}

type integer interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64
}

// combined is what op makes of two numbers; of an average it is the sum.
func combined[T integer | float64](op ccl.Op, a, b T) T {
	switch op {
	case ccl.Prod:
		return a * b
	case ccl.Min:
		return min(a, b)
	case ccl.Max:
		return max(a, b)
	}
	return a + b
}

// In whatever order ranks are combined, each partial result must be a number of the
// type, and the last one the pattern's.
func TestEveryPartialResultIsExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, typ := range allTypes {
		f := formatOf(typ)
		if !f.float() {
			continue
		}
		for _, op := range allOps {
			for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 13, 64, 200, 1000} {
				p := Pattern{Type: typ, Op: op, Reduce: true, Ranks: n, Seed: 7}
				for x := range 20 {
					order := rnd.Perm(n)
					acc := f.decode(p.value(order[0], x))
					for _, r := range order[1:] {
						acc = combined(op, acc, f.decode(p.value(r, x)))
						_, exact := f.encode(acc)
						require.True(t, exact, "%v %v n=%d x=%d: %v", typ, op, n, x, acc)
					}
					if op == ccl.Avg {
						acc /= float64(n)
					}
					bits, exact := f.encode(acc)
					require.True(t, exact, "%v %v n=%d: %v", typ, op, n, acc)
					require.Equal(t, bits, p.bits(Reduced, x), "%v %v n=%d", typ, op, n)
				}
			}
		}
	}
}

// A sum that is multiplied is exact, whether its terms are multiplied or it is.
func TestFactor(t *testing.T) {
	for _, typ := range []ccl.Type{ccl.TypeFloat16, ccl.TypeBFloat16, ccl.TypeFloat32, ccl.TypeFloat64} {
		f := formatOf(typ)
		for _, n := range []int{1, 2, 3, 64, 1000} {
			p := Pattern{Type: typ, Op: ccl.Sum, Reduce: true, Ranks: n, Seed: 7, Factor: 2}
			sum := Pattern{Type: typ, Op: ccl.Sum, Reduce: true, Ranks: n, Seed: 7}
			for x := range 20 {
				before := 0.0
				for r := range n {
					v, exact := f.encode(2 * f.decode(p.value(r, x)))
					require.True(t, exact)
					before += f.decode(v)
				}
				bits, exact := f.encode(before)
				require.True(t, exact)
				require.Equal(t, bits, p.bits(Reduced, x), "%v n=%d", typ, n)
				require.Equal(t, 2*f.decode(sum.bits(Reduced, x)), before)
			}
		}
	}
}

// The integers' fold against Go's own arithmetic on the type.
func TestIntegerFold(t *testing.T) {
	for _, op := range allOps {
		for _, n := range []int{1, 2, 3, 64, 300} {
			checkFold[int8](t, ccl.TypeInt8, op, n)
			checkFold[uint8](t, ccl.TypeUint8, op, n)
			checkFold[int16](t, ccl.TypeInt16, op, n)
			checkFold[uint16](t, ccl.TypeUint16, op, n)
			checkFold[int32](t, ccl.TypeInt32, op, n)
			checkFold[uint32](t, ccl.TypeUint32, op, n)
			checkFold[int64](t, ccl.TypeInt64, op, n)
			checkFold[uint64](t, ccl.TypeUint64, op, n)
		}
	}
}

func checkFold[T integer](t *testing.T, typ ccl.Type, op ccl.Op, n int) {
	t.Helper()
	p := Pattern{Type: typ, Op: op, Reduce: true, Ranks: n, Seed: 3}
	for x := range 50 {
		acc := T(p.value(0, x))
		for r := 1; r < n; r++ {
			v := T(p.value(r, x))
			if op == ccl.Avg {
				require.Equal(t, acc, acc+v-v)
				require.Equal(t, v > 0, acc+v > acc, "%v overflows", typ)
			}
			acc = combined(op, acc, v)
		}
		if op == ccl.Avg {
			acc = T(int64(acc) / int64(n))
			if ^T(0) > 0 {
				acc = T(p.fold(x)) // unsigned 64 bits: int64 above does not hold it
			}
		}
		require.Equal(t, acc, T(p.fold(x)), "%v %v n=%d", typ, op, n)
	}
}

// Inputs must tell ranks, elements and seeds apart, or a mistake would not show.
func TestInputsDiffer(t *testing.T) {
	for _, typ := range allTypes {
		for _, op := range allOps {
			for _, n := range []int{2, 3, 8, 64} {
				t.Run(fmt.Sprintf("%v/%v/%d", typ, op, n), func(t *testing.T) {
					p := Pattern{Type: typ, Op: op, Reduce: true, Ranks: n, Seed: 1}
					q := Pattern{Type: typ, Op: op, Reduce: true, Ranks: n, Seed: 2}
					var ranks, elements, seeds int
					for x := range 400 {
						if p.value(0, x) != p.value(1, x) {
							ranks++
						}
						if p.fold(x) != p.fold(x+1) {
							elements++
						}
						if p.fold(x) != q.fold(x) {
							seeds++
						}
					}
					// Averages of narrow types over many ranks have few values to take.
					least := 40
					if op == ccl.Avg && n*8 > 1<<(formatOf(typ).man+1) {
						least = 0
					}
					require.GreaterOrEqual(t, ranks, 40)
					require.GreaterOrEqual(t, elements, least)
					require.GreaterOrEqual(t, seeds, least)
				})
			}
		}
	}
}
