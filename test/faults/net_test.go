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

// TestNetSpare is what test/lab/spares.sh runs on each of its hosts: a job with spares, in which a rank that has lost another calls
// Replace. All end some seconds after the first one has begun.
func TestNetSpare(t *testing.T) {
	peer, err := strconv.Atoi(os.Getenv("GOCCL_FAULTS_NET"))
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	fmt.Printf("pid %d\n", os.Getpid())
	began := time.Now()
	c, err := ccl.Join(ctx, &ccl.Options{Spares: 2, PeerTimeout: time.Duration(peer) * time.Second})
	if errors.Is(err, ccl.ErrUnused) {
		fmt.Println("unused")
		return
	}
	if err != nil {
		fmt.Printf("ended: %v\n", err)
		return
	}
	last := time.Now()
	for calls := 0; ; calls++ {
		sum := []int{1 << c.Rank(), 0}
		if time.Since(began) > 9*time.Second {
			sum[1] = 1
		}
		if err = ccl.AllReduce(ctx, c, sum, sum, ccl.Sum); err == nil { // all end at the same call
			if require.Equal(t, 1<<c.Size()-1, sum[0]); calls == 0 {
				fmt.Printf("calling as rank %d of %d, fresh %v\n", c.Rank(), c.Size(), c.Fresh())
			}
			if last = time.Now(); sum[1] > 0 {
				break
			}
			continue
		}
		next, failed := c.Replace(ctx)
		if failed != nil {
			fmt.Printf("ended after %d ms: %v\n", time.Since(last).Milliseconds(), failed)
			c.Close()
			return
		}
		fmt.Printf("replaced after %d ms: %v\n", time.Since(last).Milliseconds(), err)
		c.Close()
		c, calls = next, -1
	}
	c.Close()
	fmt.Println("done")
}

// TestNetGrow is what test/lab/spares.sh runs as well: a job that takes in one that comes late, to so many ranks at most, and of whose
// sides the larger goes on after a loss. All end some seconds after the first one has begun.
func TestNetGrow(t *testing.T) {
	peer, err := strconv.Atoi(os.Getenv("GOCCL_FAULTS_NET"))
	most, merr := strconv.Atoi(os.Getenv("GOCCL_FAULTS_GROW"))
	if err != nil || merr != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Printf("pid %d\n", os.Getpid())
	began := time.Now()
	c, err := ccl.Join(ctx, &ccl.Options{PeerTimeout: time.Duration(peer) * time.Second})
	if err != nil {
		fmt.Printf("ended: %v\n", err)
		return
	}
	for calls := 0; ; calls++ {
		sum := []int{1 << c.Rank(), 0}
		if time.Since(began) > 24*time.Second {
			sum[1] = 1
		}
		next := c
		if err = ccl.AllReduce(ctx, c, sum, sum, ccl.Sum); err == nil {
			if require.Equal(t, 1<<c.Size()-1, sum[0]); calls == 0 {
				fmt.Printf("calling as rank %d of %d, fresh %v\n", c.Rank(), c.Size(), c.Fresh())
			}
			if sum[1] > 0 {
				break
			}
			time.Sleep(time.Millisecond)
			next, err = ccl.Grow(ctx, c, min(c.Size()+1, most))
		}
		if err != nil {
			var failed error
			if next, failed = c.Shrink(ctx); failed != nil || 2*next.Size() <= c.Size() {
				fmt.Printf("ended: %v; Shrink: %v, %v\n", err, next, failed)
				c.Close()
				return
			}
			fmt.Printf("shrunk to %d: %v\n", next.Size(), err)
		}
		if next != c {
			c.Close()
			c, calls = next, -1
		}
	}
	fmt.Printf("done as rank %d of %d\n", c.Rank(), c.Size())
	c.Close()
}
