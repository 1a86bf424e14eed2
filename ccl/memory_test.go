package ccl_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// There is no device memory on the CPU, and the error says what there is instead.
func TestMakeDeviceOnCPU(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		_, err := ccl.MakeDevice[float32](ctx, c, 4)
		wants(t, err, ccl.ErrUnsupported)
		assert.ErrorContains(t, err, "the backend cpu has no device memory; MakeSlice")
		works(ctx, t, c)
	})
	_, err := ccl.MakeDevice[float32](context.Background(), nil, 4)
	wants(t, err, ccl.ErrArgument)
}

// elsewhere is memory of no library.
type elsewhere struct{ ccl.Memory[int8] }

// FreeDevice takes what MakeDevice returns, and nil.
func TestFreeDeviceOfOther(t *testing.T) {
	assert.NoError(t, ccl.FreeDevice[int8](nil))
	err := ccl.FreeDevice[int8](elsewhere{})
	wants(t, err, ccl.ErrArgument)
	assert.ErrorContains(t, err, "a ccl_test.elsewhere, was not made by MakeDevice")
}
