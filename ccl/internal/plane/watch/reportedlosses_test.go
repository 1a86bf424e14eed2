package watch

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of all that hear of a loss one tells, also where many hear at once, and where more are lost than are remembered.
func TestReportedLosses(t *testing.T) {
	var m ReportedLosses
	var told [8]atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for w := range told {
				if tells, _ := m.Claim(w, 0, living); tells {
					told[w].Add(1)
				}
			}
		})
	}
	all.Wait()
	for w := range told {
		require.EqualValues(t, 1, told[w].Load(), "rank %d", w)
	}
	tells, _ := m.Claim(100, 0, living)
	require.True(t, tells)
	tells, _ = m.Claim(100, 0, living)
	require.False(t, tells)
}

// living is where no rank is lost.
func living(int) bool { return false }

// Where the process that is to tell of a loss is lost before it has told, another tells; where it has told, none does again.
func TestReportedByALostProcess(t *testing.T) {
	var m ReportedLosses
	isLost := func(w int) bool { return w == 5 }
	both := func(tells, told bool) [2]bool { return [2]bool{tells, told} }
	require.Equal(t, [2]bool{true, false}, both(m.Claim(4, 5, living)))
	require.Equal(t, [2]bool{false, false}, both(m.Claim(4, 0, living)), "rank 5 is at it")
	require.Equal(t, [2]bool{true, false}, both(m.Claim(4, 0, isLost)), "rank 5 is lost")
	require.Equal(t, [2]bool{false, false}, both(m.Claim(4, 1, isLost)), "rank 0 is at it")
	m.Tell(4, 5) // too late
	require.Equal(t, [2]bool{false, false}, both(m.Claim(4, 1, isLost)))
	m.Tell(4, 0)
	require.Equal(t, [2]bool{false, true}, both(m.Claim(4, 1, isLost)))
	require.Equal(t, [2]bool{true, false}, both(m.Claim(6, 5, living)))
	m.Tell(6, 5)
	require.Equal(t, [2]bool{false, true}, both(m.Claim(6, 1, isLost)), "rank 5 has told before it was lost")
}
