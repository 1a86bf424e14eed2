package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

func init() { roles["life"] = closedUnder }

// closedUnder: rank 0 is in a Split or a Shrink, to which rank 1 does not come, when its Comm is closed: its memory, which
// processes share, goes then.
func closedUnder(ctx context.Context, t *testing.T, use string) {
	b, err := boot.Env(ctx)
	require.NoError(t, err)
	var c *ccl.Comm
	made := make(chan struct{})
	o := &ccl.Options{}
	if use == "Split, OnFailure closes" {
		o.OnFailure = func(*ccl.Error) { <-made; c.Close() }
	}
	c, err = ccl.NewComm(ctx, b, o)
	require.NoError(t, err)
	b.Close()
	close(made)
	err = ccl.Barrier(ctx, c)
	if c.Rank() == 1 {
		<-c.Done() // rank 0 fails it, or goes
		time.Sleep(time.Second)
		return
	}
	require.NoError(t, err)
	end := func() { c.Close() }
	if o.OnFailure != nil {
		end = func() { c.Abort(errors.New("enough")) }
	}
	time.AfterFunc(300*time.Millisecond, end)
	if use == "Shrink, Close" {
		c.Abort(errors.New("enough"))
		_, err = c.Shrink(ctx)
	} else {
		_, err = c.Split(ctx, 0, 0)
	}
	fmt.Printf("%s: %v\n", use, err)
	time.Sleep(100 * time.Millisecond)
}

func TestCloseUnderASplitOrShrinkOfProcesses(t *testing.T) {
	for use, want := range map[string]string{
		"Split, Close":            "Split #2: closed with calls in progress",
		"Split, OnFailure closes": "Split #2: aborted by rank 0: enough",
		"Shrink, Close":           "Shrink: the Comm is closed",
	} {
		t.Run(use, func(t *testing.T) {
			out := processes(t, 2, 0, "life", use)
			assert.Contains(t, callSite.ReplaceAllString(out, ""), use+": ccl: rank 0: "+want)
		})
	}
}

// A call that waits for queued ones returns when the Comm is closed, whenever that comes.
func TestCloseWhileACallWaitsForTheQueue(t *testing.T) {
	for range 50 {
		all := pair(t, nil)
		w := all[0].On(nil).Barrier()
		waits := make(chan error, 1)
		go func() { waits <- ccl.Barrier(t.Context(), all[0]) }()
		time.Sleep(time.Millisecond) // it waits by now, or else comes too late: both are to end
		var wg sync.WaitGroup
		wg.Go(func() { all[0].Close() })
		wg.Go(func() { ccl.Barrier(t.Context(), all[1]) })
		ends(t, "the call", func() { wants(t, <-waits, ccl.ErrClosed) })
		ends(t, "Close", wg.Wait)
		assert.NoError(t, w.Wait(t.Context()))
		all[1].Close()
	}
}
