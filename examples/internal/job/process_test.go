package job

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Two SIGTERMs a while apart are no more than one; a second interrupt is.
func TestObey(t *testing.T) {
	signals, stop := make(chan os.Signal, 9), make(chan os.Signal, 1)
	over := make(chan bool)
	go func() { obey(signals, stop); close(over) }()
	signals <- syscall.SIGTERM
	require.Equal(t, syscall.SIGTERM, <-stop)
	time.Sleep(1100 * time.Millisecond) // what an interrupt waits for, to be another one
	signals <- syscall.SIGTERM
	signals <- syscall.SIGTERM
	select {
	case <-over:
		t.Fatal("a SIGTERM has ended it")
	case <-time.After(50 * time.Millisecond):
	}
	signals <- os.Interrupt
	<-over
}
