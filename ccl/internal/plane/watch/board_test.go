package watch

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/region"
)

// The job goes on without sharing where that helps: not where a limit is reached.
func TestShareError(t *testing.T) {
	for _, tc := range []struct {
		err  error
		goes bool
	}{
		{errors.New("nobody serves it"), true}, {syscall.ECONNREFUSED, true}, {fmt.Errorf("mmap: %w", syscall.EACCES), true},
		{syscall.EMFILE, false}, {syscall.ENFILE, false}, {fmt.Errorf("mmap: %w", syscall.ENOMEM), false}, {syscall.ENOSPC, false},
	} {
		got := ShareError(tc.err)
		require.ErrorIs(t, got, tc.err)
		require.Equal(t, tc.goes, errors.Is(got, ErrCannotShare), tc.err)
	}
}

// The memory of a host has the region of the first Comm, and, where processes share it, the pulses of all.
func TestMakeHost(t *testing.T) {
	for _, shared := range []bool{false, true} {
		s := hostOf(t, 3, 0)
		s.Procs = []int{0, 0, 2}
		if err := s.MakeHost(shared, nil); err != nil {
			t.Skip("hardware: no memory to share here: " + err.Error())
		}
		require.Equal(t, shared, s.Host.Shared())
		_, err := s.Host.View(s.FirstRegion(), region.Bytes(3))
		require.NoError(t, err)
		if shared {
			require.Len(t, s.Processes.pulses, 3)
			require.Equal(t, []watched{{local: 2}}, s.Processes.others)
			require.EqualValues(t, syscall.Getpid(), s.Processes.pulse.pid.Load())
		} else {
			require.Nil(t, s.Processes.pulse)
		}
	}
}
