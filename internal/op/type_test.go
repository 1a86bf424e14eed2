package op

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTypes(t *testing.T) {
	for i, tc := range []struct {
		name, in string
		size     int
	}{
		{"none", "none", 0}, {"int8", "int8", 1}, {"uint8", "uint8", 1}, {"int16", "int16", 2}, {"uint16", "uint16", 2},
		{"int32", "int32", 4}, {"uint32", "uint32", 4}, {"int64", "int64", 8}, {"uint64", "uint64", 8},
		{"half", "float16", 2}, {"bfloat16", "bfloat16", 2}, {"float", "float32", 4}, {"double", "float64", 8},
		{"f8e4m3", "float8e4m3", 1}, {"f8e5m2", "float8e5m2", 1}, {"bool", "bool", 1}, {"complex64", "complex64", 8}, {"complex128", "complex128", 16}, {"none", "none", 0},
	} {
		typ := Type(i)
		assert.Equal(t, []any{tc.name, tc.in, tc.size}, []any{typ.String(), typ.Go(), typ.Size()})
		assert.Equal(t, tc.size > 0, typ.Valid(), tc.name)
		assert.Equal(t, typ == Float16 || typ == BFloat16, typ.Half(), tc.name)
		assert.Equal(t, typ == Float8E4M3 || typ == Float8E5M2, typ.Float8(), tc.name)
	}
}

type (
	half   uint16
	brain  uint16
	e4m3   uint8
	e5m2   uint8
	flag   bool
	phase  complex64
	metres float32
	id     uint
)

func TestTypeOf(t *testing.T) {
	words := map[int][2]Type{32: {Int32, Uint32}, 64: {Int64, Uint64}}[bits.UintSize]
	for want, got := range map[Type]Type{
		Float16: TypeOf[half, half, brain, e4m3, e5m2](), BFloat16: TypeOf[brain, half, brain, e4m3, e5m2](),
		Float8E4M3: TypeOf[e4m3, half, brain, e4m3, e5m2](), Float8E5M2: TypeOf[e5m2, half, brain, e4m3, e5m2](),
		Uint16: TypeOf[uint16, half, brain, e4m3, e5m2](), Uint8: TypeOf[uint8, half, brain, e4m3, e5m2](),
		Bool: TypeOf[flag, half, brain, e4m3, e5m2](), Complex64: TypeOf[phase, half, brain, e4m3, e5m2](),
		Complex128: TypeOf[complex128, half, brain, e4m3, e5m2](),
		Float32:    TypeOf[metres, half, brain, struct{}, struct{}](),
	} {
		assert.Equal(t, want, got)
	}
	assert.Equal(t, words[0], TypeOf[int, half, brain, e4m3, e5m2]())
	assert.Equal(t, words[1], TypeOf[id, half, brain, e4m3, e5m2]())
}
