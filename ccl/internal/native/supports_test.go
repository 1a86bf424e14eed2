//go:build (nccl || rccl) && cgo && linux

package native

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

// What is reduced depends on the type, the operator and the version; everything is moved.
func TestSupports(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		lib := *open(t, v)
		e := &end{lib: &lib, least: least{level: anyLevel}}
		fp8 := func(old bool) *end {
			l := lib
			if l.version = v.fp8; old {
				l.version = v.fp8 - 1
			}
			return &end{lib: &l, least: least{level: anyLevel}}
		}
		older := *fp8(false)
		older.least.level = 80
		refused := " moves f8e4m3, but does not reduce it on every rank's device: that needs compute capability 9.0, and one has 8.0"
		if v.fp8Level == 0 {
			refused = ""
		}
		plain := lib
		table := *lib.t
		table.RedOpCreatePreMulSum = nil
		plain.t = &table
		for _, tc := range []struct {
			name string
			e    *end
			k    op.Kind
			t    op.Type
			op   op.Op
			want string // after the version; "" if it does
		}{
			{"float", e, op.AllReduce, op.Float32, op.Avg, ""},
			{"bfloat16", e, op.ReduceScatterV, op.BFloat16, op.Max, ""},
			{"int16 is moved", e, op.AllGather, op.Int16, op.Sum, ""},
			{"int16 is not reduced", e, op.Reduce, op.Int16, op.Sum, " has no int16: it moves it as bytes, but does not reduce it"},
			{"scaled", e, op.AllReduce, op.Float64, op.Scaled, ""},
			{"scaled integers", e, op.AllReduce, op.Int32, op.Scaled, " does not scale int32 here"},
			{"scaled, old", &end{lib: &plain}, op.AllReduce, op.Float32, op.Scaled, " has no ncclRedOpCreatePreMulSum; that needs " + v.title + " 2.11"},
			{"fp8", fp8(false), op.AllReduce, op.Float8E4M3, op.Sum, ""},
			{"fp8, an older device", &older, op.Reduce, op.Float8E4M3, op.Sum, refused},
			{"fp8 is moved, an older device", &older, op.Broadcast, op.Float8E4M3, op.Sum, ""},
			{"fp8, old", fp8(true), op.AllReduce, op.Float8E5M2, op.Sum, " moves f8e5m2, but does not reduce it; that needs " + v.title + " " + version(v.fp8)},
			{"fp8 is moved, old", fp8(true), op.Send, op.Float8E5M2, op.Sum, ""},
			{"a type to come", e, op.AllReduce, 99, op.Sum, " has no such type or operator"},
			{"bits", e, op.AllReduce, op.Int32, op.BAnd, " has no bitwise operators"},
			{"bool", e, op.AllReduce, op.Bool, op.Max, " has no bool: it moves it as bytes, but does not reduce it"},
			{"complex128 is moved", e, op.Send, op.Complex128, op.Sum, ""},
			{"an operator to come", e, op.AllReduce, op.Int8, op.Ops, " has no such type or operator"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				err := tc.e.Supports(tc.k, tc.t, tc.op, false)
				if tc.want == "" {
					require.NoError(t, err)
					return
				}
				require.EqualError(t, err, tc.e.lib.Version()+tc.want)
			})
		}
	})
}

// All types have the size that they have in Go.
func TestWidths(t *testing.T) {
	want := map[op.Type]int{op.None: 1, op.Int8: 1, op.Uint8: 1, op.Int16: 2, op.Uint16: 2, op.Int32: 4, op.Uint32: 4,
		op.Int64: 8, op.Uint64: 8, op.Float16: 2, op.BFloat16: 2, op.Float32: 4, op.Float64: 8, op.Float8E4M3: 1, op.Float8E5M2: 1,
		op.Bool: 1, op.Complex64: 8, op.Complex128: 16}
	require.Len(t, types, len(want))
	vendors(t, func(t *testing.T, v *vendor) {
		lib := open(t, v)
		for typ, bytes := range want {
			_, got := lib.wire(typ)
			require.Equal(t, bytes, got, "%v", typ)
		}
	})
}
