package cpu

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
)

// The monitor finds that a device stands still. While it reports that, the last Comm of the process is closed: the job ends
// in this process all the same, and the monitor with it.
func TestJobEndsWhileTheMonitorFails(t *testing.T) {
	b := boot.Local(1)[0]
	defer b.Close()
	c, f := Join(t.Context(), b, testTerms(), plane.Options{Agreed: group.Agreed{Timeout: time.Millisecond}})
	require.Nil(t, f)
	s := c.rank.Site
	s.Job.Order.Lock() // what is reported waits for this test
	c.rank.Standing.Elsewhere.Stands(1)
	require.Eventually(t, func() bool { return c.rank.Fate.Proposal() != nil }, 10*time.Second, time.Millisecond)
	c.Close()
	s.Job.Order.Unlock()
	ended := make(chan struct{})
	go func() {
		<-s.Job.Life.StopCh
		s.Job.Life.Wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		require.Fail(t, "the job does not end")
	}
}
