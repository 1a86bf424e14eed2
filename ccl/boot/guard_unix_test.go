//go:build unix

package boot

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// group is a process in a group of its own, as a rank is.
func group(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// Once nobody can tell it more, a guard kills the groups that it knows of, and not those that are gone: their numbers may be
// others' by then.
func TestGuard(t *testing.T) {
	a, b, c := group(t), group(t), group(t)
	g := newGuard()
	require.NotNil(t, g)
	for _, cmd := range []*exec.Cmd{a, b, c} {
		g.add(cmd.Process.Pid)
	}
	g.gone(b.Process.Pid)
	require.NoError(t, g.in.Close()) // as the end of this process would
	g.cmd.Wait()
	for _, cmd := range []*exec.Cmd{a, c} {
		cmd.Wait()
		require.Equal(t, syscall.SIGKILL, signalOf(cmd.ProcessState))
	}
	require.NoError(t, syscall.Kill(b.Process.Pid, 0))
}

// A guard that is dismissed leaves all alone; signals of a terminal do not end it, and one that was killed does no harm.
func TestGuardIsDismissed(t *testing.T) {
	a := group(t)
	g := newGuard()
	require.NotNil(t, g)
	g.add(a.Process.Pid)
	g.dismiss()
	require.NoError(t, syscall.Kill(a.Process.Pid, 0))
	g.add(a.Process.Pid)
	g.gone(a.Process.Pid)
	var none *guard
	none.add(1)
	none.gone(1)
	none.dismiss()
}
