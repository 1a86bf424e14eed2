package ccl_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// There are no windows on the CPU, and the error says what there is instead.
func TestWindowOnCPU(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		_, err := c.Window(ctx, ccl.BufOf(make([]float32, 4)))
		wants(t, err, ccl.ErrUnsupported)
		assert.ErrorContains(t, err, "Window: the backend cpu makes no windows; MakeSlice")
		works(ctx, t, c)
	})
	_, err := (*ccl.Comm)(nil).Window(context.Background(), ccl.Buf{})
	wants(t, err, ccl.ErrArgument)
}
