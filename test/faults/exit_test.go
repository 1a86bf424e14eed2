//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// endings are the ways in which rank 1 ends; the others call on.
var endings = []struct {
	name  string
	end   func(ctx context.Context, c *ccl.Comm)
	codes []ccl.Code // what the others may hear
}{
	{"panic with a deferred Close", func(context.Context, *ccl.Comm) { panic("on purpose") }, []ccl.Code{ccl.ErrAborted}},
	{"os.Exit(0) in a call", func(ctx context.Context, c *ccl.Comm) {
		time.AfterFunc(3*time.Millisecond, func() { os.Exit(0) })
		callOn(ctx, c)
		select {}
	}, []ccl.Code{ccl.ErrRankLost}},
	{"log.Fatal", func(context.Context, *ccl.Comm) { log.Fatal("on purpose") }, []ccl.Code{ccl.ErrRankLost}},
	{"Goexit of main", func(context.Context, *ccl.Comm) { go os.Exit(3); runtime.Goexit() }, []ccl.Code{ccl.ErrAborted, ccl.ErrRankLost}},
	{"a canceled context", func(ctx context.Context, c *ccl.Comm) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(3*time.Millisecond, cancel)
		say(c, callOn(ctx, c))
	}, []ccl.Code{ccl.ErrCanceled}},
	{"Abort from another goroutine", func(ctx context.Context, c *ccl.Comm) {
		time.AfterFunc(3*time.Millisecond, func() { c.Abort(errors.New("on purpose")) })
		say(c, callOn(ctx, c))
	}, []ccl.Code{ccl.ErrAborted}},
	{"Close during a call", func(ctx context.Context, c *ccl.Comm) {
		time.AfterFunc(3*time.Millisecond, func() { c.Close() })
		say(c, callOn(ctx, c))
		c.Close()
	}, []ccl.Code{ccl.ErrClosed}},
	{"a GC storm, then Close", func(ctx context.Context, c *ccl.Comm) {
		stop := time.Now().Add(50 * time.Millisecond)
		go func() {
			for time.Now().Before(stop) {
				runtime.GC()
			}
		}()
		x := make([]float32, 1000)
		for time.Now().Before(stop) {
			if err := ccl.AllReduce(ctx, c, x, x, ccl.Max); err != nil {
				say(c, err)
				return
			}
		}
		c.Close()
		time.Sleep(100 * time.Millisecond)
	}, []ccl.Code{ccl.ErrClosed}},
}

func init() {
	for i, e := range endings {
		parts[fmt.Sprint("ending ", i)] = func(ctx context.Context, c *ccl.Comm) {
			rest, err := c.Split(ctx, map[bool]int{true: 1, false: 0}[c.Rank() == 1], 0) // a Comm without rank 1
			if err != nil {
				fmt.Println(err)
				return
			}
			defer rest.Close()
			if err = ccl.Barrier(ctx, c); err == nil { // all have the other Comm
				if c.Rank() == 1 {
					e.end(ctx, c)
					return
				}
				err = callOn(ctx, c)
			}
			say(c, err)
			for range 10 { // which goes on
				if err := ccl.Barrier(ctx, rest); err != nil {
					fmt.Printf("the others of rank %d: %v\n", c.Rank(), err)
					return
				}
			}
			fmt.Printf("rank %d goes on\n", c.Rank())
		}
	}
}

// callOn makes calls until one fails.
func callOn(ctx context.Context, c *ccl.Comm) error {
	x := make([]float32, 1000)
	for {
		if err := ccl.AllReduce(ctx, c, x, x, ccl.Max); err != nil {
			return err
		}
	}
}

func say(c *ccl.Comm, err error) {
	var e *ccl.Error
	if errors.As(err, &e) {
		fmt.Printf("rank %d: code %d peer %d: %v\n", c.Rank(), e.Code, e.Peer, err)
	}
}

func init() {
	parts["dies in Split"] = func(ctx context.Context, c *ccl.Comm) {
		if c.Rank() == 1 {
			time.AfterFunc(time.Duration(os.Getpid()%20)*100*time.Microsecond, func() { os.Exit(0) })
		}
		rest, err := c.Split(ctx, map[bool]int{true: 1, false: 0}[c.Rank() == 1], 0)
		if c.Rank() == 1 {
			select {}
		}
		for err == nil && ctx.Err() == nil {
			err = ccl.Barrier(ctx, rest)
			if c.Err() != nil && err == nil {
				break // rank 1 has gone, and all others have their Comm
			}
		}
		fmt.Printf("rank %d has ended: %v\n", c.Rank(), ctx.Err())
	}
}

// A rank dies while others make a Comm without it: nobody waits there for one that has failed.
func TestDeathInSplit(t *testing.T) {
	for range 10 {
		for _, hosts := range []int{0, 2} {
			text := processes(t, 4, hosts, "dies in Split", "")
			for _, r := range []int{0, 2, 3} {
				require.Contains(t, text, fmt.Sprintf("rank %d has ended: <nil>\n", r))
			}
		}
	}
}

// Whatever becomes of rank 1, the others hear of it in their call, with the right code, and a
// Comm of which it is no member goes on.
func TestExitPaths(t *testing.T) {
	for i, e := range endings {
		for _, hosts := range []int{0, 2, 4} {
			t.Run(fmt.Sprintf("%s, hosts=%d", e.name, hosts), func(t *testing.T) {
				text := processes(t, 4, hosts, fmt.Sprint("ending ", i), "")
				codes := e.codes
				if hosts > 0 {
					// A process that ends right after Close may be found gone before its good-bye is read.
					codes = append(codes[:len(codes):len(codes)], ccl.ErrRankLost)
				}
				for _, r := range []int{0, 2, 3} {
					ok := false
					for _, code := range codes {
						ok = ok || strings.Contains(text, fmt.Sprintf("rank %d: code %d peer 1: ", r, code))
					}
					require.True(t, ok, "rank %d should have told of rank 1:\n%s", r, text)
					require.Contains(t, text, fmt.Sprintf("rank %d goes on\n", r))
				}
			})
		}
	}
}
