//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// TestNetRank is not a test of its own: it is what test/lab/faults.sh runs on each of its hosts.
// It calls until a call fails, or for some seconds, and says what it has heard.
func TestNetRank(t *testing.T) {
	peer, err := strconv.Atoi(os.Getenv("GOCCL_FAULTS_NET"))
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := ccl.Join(ctx, &ccl.Options{PeerTimeout: time.Duration(peer) * time.Second})
	require.NoError(t, err)
	defer c.Close()
	x := make([]float32, 10_000)
	began, last := time.Now(), time.Now()
	for i := 0; ; i++ {
		over := []float32{0}
		if time.Since(began) > 12*time.Second {
			over[0] = 1
		}
		if err = ccl.AllReduce(ctx, c, x, x, ccl.Max); err == nil {
			err = ccl.AllReduce(ctx, c, over, over, ccl.Max) // all end at the same call
		}
		if i == 0 {
			fmt.Println("calling")
		}
		if err != nil {
			break
		}
		if last = time.Now(); over[0] == 1 {
			fmt.Println("done")
			return
		}
	}
	var e *ccl.Error
	errors.As(err, &e)
	what := "ended by"
	if e.Code == ccl.ErrRankLost {
		what = "lost"
	}
	fmt.Printf("%s rank %d after %d ms: %v\n", what, e.Peer, time.Since(last).Milliseconds(), err)
}
