package mpi

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// ascending has its keys in order, and each key gives the value back.
func ascending[T Number](t *testing.T, values ...T) {
	typ := TypeOf[T]()
	for i, v := range values {
		require.Equal(t, v, valueOf[T](typ, key(typ, v)), typ)
		if i > 0 {
			require.Less(t, key(typ, values[i-1]), key(typ, v), "%v: %v and %v", typ, values[i-1], v)
		}
	}
}

type seconds float32

func TestKeysAreInOrder(t *testing.T) {
	ascending[int8](t, -128, -1, 0, 1, 127)
	ascending[int16](t, -32768, -1, 0, 1, 32767)
	ascending[int32](t, math.MinInt32, -1, 0, 1, math.MaxInt32)
	ascending[int64](t, math.MinInt64, -1, 0, 1, math.MaxInt64)
	ascending(t, math.MinInt, -1, 0, 1, math.MaxInt)
	ascending[uint8](t, 0, 1, 255)
	ascending[uint16](t, 0, 1, 65535)
	ascending[uint32](t, 0, 1, math.MaxUint32)
	ascending[uint64](t, 0, 1, 1<<63, math.MaxUint64)
	ascending[uint](t, 0, 1, math.MaxUint)
	inf := math.Inf(1)
	ascending(t, -inf, -math.MaxFloat64, -1, -5e-324, 0, 5e-324, 1, math.MaxFloat64, inf)
	ascending(t, float32(-inf), -1, -0x1p-149, 0, 0x1p-149, 1, float32(inf))
	ascending[seconds](t, -2, 0, 2.5)
	ascending[Float16](t, 0xfc00, 0xfbff, 0xbc00, 0x8001, 0, 1, 0x3c00, 0x7bff, 0x7c00)
	ascending[BFloat16](t, 0xff80, 0xff7f, 0xbf80, 0x8001, 0, 1, 0x3f80, 0x7f7f, 0x7f80)
	require.Equal(t, key(TypeFloat64, 0.0), key(TypeFloat64, math.Copysign(0, -1)))
	require.Equal(t, key[Float16](TypeFloat16, 0), key[Float16](TypeFloat16, 0x8000))
	require.Equal(t, uint64(nan), key(TypeFloat32, float32(math.NaN())))
	require.Equal(t, uint64(nan), key[Float16](TypeFloat16, 0xfe00))
	require.Equal(t, uint64(nan), key[BFloat16](TypeBFloat16, 0x7fc0))
	require.Greater(t, valueOf[Float16](TypeFloat16, nan), Float16(0x7c00))
	require.True(t, math.IsNaN(valueOf[float64](TypeFloat64, nan)))
}
