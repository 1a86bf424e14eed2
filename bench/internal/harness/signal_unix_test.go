//go:build unix

package harness

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A signal that is ignored, SIGINT as a shell has it for what it starts in the background, SIGHUP as nohup has it, stays
// ignored; the others end the run.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	heed := func() { // Reset would leave them ignored
		c := make(chan os.Signal, 1)
		signal.Notify(c, all...)
		signal.Stop(c)
	}
	heed() // a shell may have started this test in the background
	for i, s := range all {
		ignored := append(append([]os.Signal{}, all[:i]...), all[i+1:]...)
		signal.Ignore(ignored...)
		ctx, stop := untilSignalled()
		for _, s := range ignored {
			require.True(t, signal.Ignored(s), s)
			require.NoError(t, syscall.Kill(os.Getpid(), s.(syscall.Signal)))
		}
		require.NoError(t, ctx.Err())
		require.NoError(t, syscall.Kill(os.Getpid(), s.(syscall.Signal)))
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Fatal("no end by ", s)
		}
		stop()
		heed()
	}
	signal.Ignore(all...)
	defer heed()
	ctx, stop := untilSignalled()
	for _, s := range all {
		require.True(t, signal.Ignored(s), s)
	}
	require.NoError(t, ctx.Err())
	stop()
	require.Error(t, ctx.Err())
}
