//go:build (nccl || rccl) && cgo && linux

package native

import (
	"testing"

	"github.com/stretchr/testify/require"

	gpu "github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/internal/op"
)

// The arithmetic of 8-bit floats is NCCL's, as docs/types.md has it: what is beyond the largest number becomes that, an
// infinity too, and of a number and a NaN Min and Max are the number.
func TestFloat8Arithmetic(t *testing.T) {
	const inf, nan, most, one = 0x7c, 0x7f, 0x7b, 0x3c // of E5M2
	for _, tc := range []struct {
		name   string
		typ    op.Type
		op     op.Op
		ranks  [2]byte
		result byte
	}{
		{"an infinity and a number", op.Float8E5M2, op.Sum, [2]byte{inf, one}, most},
		{"a negative infinity", op.Float8E5M2, op.Sum, [2]byte{one, 0x80 | inf}, 0x80 | most},
		{"infinities that cancel", op.Float8E5M2, op.Sum, [2]byte{inf, 0x80 | inf}, nan},
		{"a product of an infinity", op.Float8E5M2, op.Prod, [2]byte{one, inf}, most},
		{"the greatest is an infinity", op.Float8E5M2, op.Max, [2]byte{inf, one}, most},
		{"a number and a NaN", op.Float8E5M2, op.Max, [2]byte{one, nan}, one},
		{"a NaN and a number", op.Float8E5M2, op.Min, [2]byte{nan, one}, one},
		{"a sum beyond E5M2", op.Float8E5M2, op.Sum, [2]byte{most, most}, most},
		{"a sum beyond E4M3", op.Float8E4M3, op.Sum, [2]byte{0x7e, 0x7e}, 0x7e},
	} {
		vendors(t, func(t *testing.T, v *vendor) {
			ranks := world(t, v, 2)
			each(t, 2, func(i int) error {
				r := ranks[i]
				m, err := gpu.Alloc[byte](r.device, 1)
				require.NoError(t, err)
				defer m.Free()
				require.NoError(t, m.Put(tc.ranks[i:i+1]))
				at, _ := m.Ptr()
				c := op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: tc.typ, Op: tc.op, Root: -1, Count: 1},
					DstAt: at, SrcAt: at, DstN: 1, SrcN: 1}}
				require.NoError(t, r.Issue(r.handle(), []*op.Call{&c}))
				require.NoError(t, r.wait(within(t)))
				got := make([]byte, 1)
				require.NoError(t, m.Get(got))
				require.Equal(t, []byte{tc.result}, got, "%s: %#x", tc.name, got)
				return nil
			})
		})
	}
}
