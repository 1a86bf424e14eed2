package same

import (
	"context"

	"github.com/goccl/goccl/ccl"
)

// Give gives all ranks root's x, of whatever length it is there.
func Give[T ccl.Number](ctx context.Context, c *ccl.Comm, x []T, root int) ([]T, error) {
	n := []int{len(x)}
	if err := ccl.Broadcast(ctx, c, n, root); err != nil {
		return nil, err
	}
	if c.Rank() != root {
		x = make([]T, n[0])
	}
	return x, ccl.Broadcast(ctx, c, x, root)
}
