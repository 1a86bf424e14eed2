package ccl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// TestLifeProcess is not a test of its own: it is what the processes run that the test below starts. Rank 0 is in a Split
// or a Shrink, to which rank 1 does not come, when its Comm is closed: its memory, which processes share, goes then.
func TestLifeProcess(t *testing.T) {
	use := os.Getenv("CCL_TEST_LIFE")
	if use == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
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
	require.NoError(t, ccl.Barrier(ctx, c))
	if c.Rank() == 1 {
		<-c.Done() // rank 0 fails it, or goes
		time.Sleep(time.Second)
		return
	}
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
			ctx, cancel := context.WithTimeout(t.Context(), long)
			defer cancel()
			var out bytes.Buffer
			boot.Spawn(ctx, boot.Command{N: 2, Path: os.Args[0], KeepGoing: true, Args: []string{"-test.run=^TestLifeProcess$"},
				Env: append(os.Environ(), "CCL_TEST_LIFE="+use, "GORACE=atexit_sleep_ms=0"), Stdout: &out, Stderr: &out})
			require.NoError(t, ctx.Err(), "%s", &out)
			assert.Contains(t, callSite.ReplaceAllString(out.String(), ""), use+": ccl: rank 0: "+want)
			assert.NotContains(t, out.String(), "SIGSEGV")
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
