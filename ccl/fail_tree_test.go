package ccl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// TestTreeProcess is not a test of its own: it is what the processes run that the test below starts, each a host. Ranks 1
// and 2 are killed, through whom the others are joined in the tree; then rank 3 aborts a Comm that has neither, while
// nobody of it is in a call.
func TestTreeProcess(t *testing.T) {
	if os.Getenv("CCL_TEST_TREE") == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	c, err := ccl.Join(ctx, nil)
	require.NoError(t, err)
	defer c.Close()
	color := 0
	if c.Rank() == 1 || c.Rank() == 2 {
		color = 1
	}
	rest, err := c.Split(ctx, color, 0)
	require.NoError(t, err)
	defer rest.Close()
	works(ctx, t, rest)
	works(ctx, t, c)
	if color == 1 {
		killSelf()
	}
	<-c.Done()
	works(ctx, t, rest) // goes on
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
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var out bytes.Buffer
	began := time.Now()
	boot.Spawn(ctx, boot.Command{N: 8, Hosts: 8, Path: os.Args[0], KeepGoing: true, Args: []string{"-test.run=^TestTreeProcess$"},
		Env: append(os.Environ(), "CCL_TEST_TREE=1", "GORACE=atexit_sleep_ms=0"), Stdout: &out, Stderr: &out})
	require.NoError(t, ctx.Err(), "%s", &out)
	for r, in := range map[int]string{0: "0", 3: "1 (world rank 3)", 4: "2 (world rank 4)", 5: "3 (world rank 5)", 6: "4 (world rank 6)", 7: "5 (world rank 7)"} {
		assert.Contains(t, out.String(), fmt.Sprintf("rank %d: ccl: world/0: rank %s: Comm: aborted by rank 1 (world rank 3): that will do", r, in))
	}
	assert.Less(t, time.Since(began), 20*time.Second)
	assert.False(t, strings.Contains(out.String(), "panic"), "%s", &out)
}
