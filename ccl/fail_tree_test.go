package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func init() { roles["tree"] = withoutLeaders }

// withoutLeaders is a host: ranks 1 and 2 are killed, through which the others are joined in the tree; then rank 3 aborts a Comm
// that has neither, while nobody of it is in a call.
func withoutLeaders(ctx context.Context, t *testing.T, _ string) {
	c := joined(ctx, t, nil)
	color := 0
	if c.Rank() == 1 || c.Rank() == 2 {
		color = 1
	}
	rest, err := c.Split(ctx, color, 0)
	require.NoError(t, err)
	defer rest.Close()
	works(ctx, t, rest)
	_ = ccl.Barrier(ctx, c) // which the killed may end
	if color == 1 {
		killSelf()
	}
	<-c.Done()
	_ = ccl.Barrier(ctx, rest) // goes on, until rank 3 ends it
	if c.Rank() == 3 {
		rest.Abort(errors.New("that will do"))
	}
	select {
	case <-rest.Done():
	case <-ctx.Done():
	}
	var e *ccl.Error
	errors.As(rest.Err(), &e)
	fmt.Printf("rank %d: %v\n", c.Rank(), e)
}

func TestR1KilledLeadersDoNotCutTheRest(t *testing.T) {
	began := time.Now()
	out := processes(t, 8, 8, "tree", "")
	for r, in := range map[int]string{0: "0", 3: "1 (world rank 3)", 4: "2 (world rank 4)", 5: "3 (world rank 5)", 6: "4 (world rank 6)", 7: "5 (world rank 7)"} {
		assert.Contains(t, out, fmt.Sprintf("rank %d: ccl: world/0: rank %s: Comm: aborted by rank 1 (world rank 3): that will do", r, in))
	}
	assert.Less(t, time.Since(began), 20*time.Second)
	assert.NotContains(t, out, "panic")
}
