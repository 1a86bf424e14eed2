package boot

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func init() {
	roles["cut off"] = func(string) int { // in a network of its own, whose loopback interface is down
		began := time.Now()
		self, _ := os.Executable()
		fmt.Println(Spawn(context.Background(), Command{N: 2, Path: self, Env: append(os.Environ(), "BOOT_TEST_ROLE=join")}))
		for rank := range 2 {
			_, err := TCP(context.Background(), "127.0.0.1:29500", rank, 2, nil)
			fmt.Println(err)
		}
		fmt.Println("in time", time.Since(began) < 10*time.Second)
		return 0
	}
	roles["set down"] = func(string) int { // as above, where it was up before
		loopbackIs(unix.IFF_UP)
		loopbackIs(0)
		return roles["cut off"]("")
	}
}

// loopbackIs sets the flags of this network's loopback interface.
func loopbackIs(flags uint16) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		panic(err)
	}
	defer unix.Close(fd)
	lo, _ := unix.NewIfreq("lo")
	lo.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		panic(err)
	}
}

// ownNetwork has a child run in a network of its own, as its root.
func ownNetwork() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
}

// Without a loopback interface that is up a job on one host fails at once, on all ranks, with the reason.
func TestLoopbackDown(t *testing.T) {
	for _, role := range []string{"cut off", "set down"} {
		t.Run(role, func(t *testing.T) {
			cmd, out := as(t, role, ownNetwork(), os.Environ()...)
			if err := cmd.Start(); err != nil {
				t.Skipf("hardware: no network of its own: %v", err)
			}
			require.NoError(t, cmd.Wait(), out.String())
			const why = "its loopback interface is down (ip link set lo up brings it up)\n"
			require.Equal(t, "boot: this host does not reach itself: "+why+
				"boot: rank 0 of 2: this host does not reach itself: "+why+
				"boot: rank 1 of 2: rank 0 at 127.0.0.1:29500 cannot be reached: this host does not reach itself: "+why+
				"in time true\n", out.String())
		})
	}
}
