package proc

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUptime(t *testing.T) {
	if runtime.GOOS != "linux" {
		require.Zero(t, Uptime())
		return
	}
	before := Uptime()
	require.Positive(t, before)
	time.Sleep(time.Millisecond)
	require.GreaterOrEqual(t, Uptime()-before, time.Millisecond)
}
