//go:build (nccl || rccl) && cgo && linux

package native

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
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
			k    engine.Kind
			t    engine.Type
			op   engine.Op
			want string // after the version; "" if it does
		}{
			{"float", e, engine.AllReduce, engine.Float32, engine.Avg, ""},
			{"bfloat16", e, engine.ReduceScatterV, engine.BFloat16, engine.Max, ""},
			{"int16 is moved", e, engine.AllGather, engine.Int16, engine.Sum, ""},
			{"int16 is not reduced", e, engine.Reduce, engine.Int16, engine.Sum, " has no int16: it moves it as bytes, but does not reduce it"},
			{"scaled", e, engine.AllReduce, engine.Float64, engine.Scaled, ""},
			{"scaled integers", e, engine.AllReduce, engine.Int32, engine.Scaled, " does not scale int32 here"},
			{"scaled, old", &end{lib: &plain}, engine.AllReduce, engine.Float32, engine.Scaled, " has no ncclRedOpCreatePreMulSum; that needs " + v.title + " 2.11"},
			{"fp8", fp8(false), engine.AllReduce, engine.Float8E4M3, engine.Sum, ""},
			{"fp8, an older device", &older, engine.Reduce, engine.Float8E4M3, engine.Sum, refused},
			{"fp8 is moved, an older device", &older, engine.Broadcast, engine.Float8E4M3, engine.Sum, ""},
			{"fp8, old", fp8(true), engine.AllReduce, engine.Float8E5M2, engine.Sum, " moves f8e5m2, but does not reduce it; that needs " + v.title + " " + version(v.fp8)},
			{"fp8 is moved, old", fp8(true), engine.Send, engine.Float8E5M2, engine.Sum, ""},
			{"a type to come", e, engine.AllReduce, 99, engine.Sum, " has no such type or operator"},
			{"an operator to come", e, engine.AllReduce, engine.Int8, 99, " has no such type or operator"},
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
	want := map[engine.Type]int{engine.None: 1, engine.Int8: 1, engine.Uint8: 1, engine.Int16: 2, engine.Uint16: 2, engine.Int32: 4, engine.Uint32: 4,
		engine.Int64: 8, engine.Uint64: 8, engine.Float16: 2, engine.BFloat16: 2, engine.Float32: 4, engine.Float64: 8, engine.Float8E4M3: 1, engine.Float8E5M2: 1}
	require.Len(t, types, len(want))
	vendors(t, func(t *testing.T, v *vendor) {
		lib := open(t, v)
		for typ, bytes := range want {
			_, got := lib.wire(typ)
			require.Equal(t, bytes, got, "%v", typ)
		}
	})
}
