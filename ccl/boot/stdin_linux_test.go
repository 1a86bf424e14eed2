package boot

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func init() {
	roles["at a terminal"] = func(string) int {
		self, _ := os.Executable()
		err := Spawn(context.Background(), Command{N: 2, Path: self, Env: append(os.Environ(), "BOOT_TEST_ROLE=count"), Stdin: os.Stdin, Stdout: os.Stderr, Prefix: true})
		fmt.Fprintln(os.Stderr, err)
		return 0
	}
}

// What is typed goes to rank 0, whose process group is not the terminal's foreground and so could not read it.
func TestSpawnAtATerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("hardware: no terminals: %v", err)
	}
	defer master.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	defer slave.Close()

	cmd, out := as(t, "at a terminal", &syscall.SysProcAttr{Setsid: true, Setctty: true}, os.Environ()...)
	cmd.Stdin = slave
	require.NoError(t, cmd.Start())
	_, err = master.WriteString("hello\n\x04") // a line, and its end
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	require.Equal(t, []string{"<nil>\n", "[0] 6\n", "[1] 0\n"}, sortedLines(out))
}
