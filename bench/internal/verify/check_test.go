package verify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func pattern(typ ccl.Type, op ccl.Op, n int) *Pattern {
	return &Pattern{Type: typ, Op: op, Reduce: true, Ranks: n, Seed: 42}
}

// honest is the reduced result, by filling with it.
func honest(p *Pattern, elements int) []byte {
	b := make([]byte, elements*p.Type.Size())
	p.Fill(b, Reduced, 0)
	return b
}

func TestCheckAcceptsWhatIsRight(t *testing.T) {
	for _, typ := range allTypes {
		for _, elements := range []int{0, 1, 2, 63, block - 1, block, block + 1, 5000} {
			p := pattern(typ, ccl.Sum, 3)
			wrong, _ := p.Check(honest(p, elements), Reduced, 0)
			require.Zero(t, wrong, "%v x %d", typ, elements)
		}
	}
}

// A buffer filled in one go is the same as one filled piece by piece.
func TestFillAtAnOffset(t *testing.T) {
	p := pattern(ccl.TypeInt32, ccl.Sum, 2)
	whole := make([]byte, 5000*4)
	p.Fill(whole, 1, 0)
	for _, off := range []int{1, 7, block - 1, block, 2*block + 5} {
		part := make([]byte, 1500*4)
		p.Fill(part, 1, off)
		require.Equal(t, whole[off*4:][:len(part)], part)
		wrong, _ := p.Check(part, 1, off)
		require.Zero(t, wrong)
	}
}

// Every kind of mistake a collective can make is found, with each type.
func TestCheckFindsPlantedErrors(t *testing.T) {
	const elements = 4 * 1024
	for _, typ := range allTypes {
		size := typ.Size()
		for _, tc := range []struct {
			name string
			harm func(p *Pattern, b []byte)
			min  int // elements at least that must be found
		}{
			{"one bit", func(p *Pattern, b []byte) { b[2000*size] ^= 1 }, 1},
			{"swapped chunks", func(p *Pattern, b []byte) {
				h := len(b) / 2
				c := append([]byte(nil), b[:h]...)
				copy(b, b[h:])
				copy(b[h:], c)
			}, elements / 4},
			{"skipped tail", func(p *Pattern, b []byte) { p.Poison(b[len(b)-3*size:], Reduced, elements-3) }, 3},
			{"shifted by one", func(p *Pattern, b []byte) { copy(b[size:], b) }, elements / 4},
			{"stale result", func(p *Pattern, b []byte) {
				q := *p
				q.tables, q.Seed = nil, p.Seed+1
				q.Fill(b, Reduced, 0)
			}, elements / 4},
			{"a rank's input", func(p *Pattern, b []byte) { p.Fill(b, 1, 0) }, elements / 4},
			{"one rank left out", func(p *Pattern, b []byte) {
				q := *p
				q.tables, q.Ranks = nil, p.Ranks-1
				for x := range elements {
					number, at := x/block, x%block
					turn := int(hash(p.Seed, uint64(number), 1<<43) % block)
					f := formatOf(p.Type)
					var bits uint64
					if f.float() {
						sum := 0.0
						for r := range q.Ranks {
							sum += f.decode(p.value(r, (turn+at)%block))
						}
						bits, _ = f.encode(sum)
					} else {
						for r := range q.Ranks {
							bits += p.value(r, (turn+at)%block)
						}
						bits &= f.mask()
					}
					put(b[x*size:], size, bits)
				}
			}, elements / 4},
			{"zeros", func(p *Pattern, b []byte) { clear(b) }, elements / 4},
			{"nothing written", func(p *Pattern, b []byte) { p.Poison(b, Reduced, 0) }, elements},
		} {
			t.Run(typ.String()+"/"+tc.name, func(t *testing.T) {
				p := pattern(typ, ccl.Sum, 3)
				b := honest(p, elements)
				tc.harm(p, b)
				wrong, first := p.Check(b, Reduced, 0)
				require.GreaterOrEqual(t, wrong, tc.min)
				require.NotEqual(t, first.Got, first.Want)
			})
		}
	}
}

func TestFirstWrong(t *testing.T) {
	p := pattern(ccl.TypeUint16, ccl.Max, 4)
	b := honest(p, 3000)
	b[2*1500] ^= 1
	b[2*2500] ^= 1
	wrong, first := p.Check(b, Reduced, 0)
	require.Equal(t, 2, wrong)
	require.Equal(t, 1500, first.Index)
	require.Equal(t, first.Want, first.Got^1)
}

func BenchmarkCheck(b *testing.B) {
	p := pattern(ccl.TypeFloat32, ccl.Sum, 8)
	buf := honest(p, 16<<20)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		p.Check(buf, Reduced, 0)
	}
}
