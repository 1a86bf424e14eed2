package gpu_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/rocm"
)

// What is of one platform, or of one type of elements, is not taken for what is of another, even where a program converts.
func TestPlatformsDoNotMix(t *testing.T) {
	for _, pair := range [][2]any{
		{cuda.Device{}, rocm.Device{}},
		{&cuda.Stream{}, &rocm.Stream{}},
		{&cuda.Event{}, &rocm.Event{}},
		{&cuda.Graph{}, &rocm.Graph{}},
		{&cuda.Mem[float32]{}, &rocm.Mem[float32]{}},
		{&cuda.Host[float32]{}, &rocm.Host[float32]{}},
		{&cuda.Mem[float32]{}, &cuda.Mem[int32]{}},
		{&cuda.Host[float32]{}, &cuda.Host[int32]{}},
	} {
		a, b := reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1])
		require.False(t, a.ConvertibleTo(b) || b.ConvertibleTo(a), "%v and %v", a, b)
		require.True(t, a.ConvertibleTo(a))
	}
}
