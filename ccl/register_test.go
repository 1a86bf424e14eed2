package ccl_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// Nothing is registered on the CPU, and the error says what there is instead.
func TestRegisterOnCPU(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		_, err := c.Register(ctx, ccl.BufOf(make([]float32, 4)))
		wants(t, err, ccl.ErrUnsupported)
		assert.ErrorContains(t, err, "the backend cpu registers no memory; MakeSlice")
		works(ctx, t, c)
	})
	_, err := (*ccl.Comm)(nil).Register(context.Background(), ccl.Buf{})
	wants(t, err, ccl.ErrArgument)
}
