package boot

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
}

// Without a loopback interface that is up a job on one host fails at once, on all ranks, with the reason.
func TestLoopbackDown(t *testing.T) {
	cmd, out := as(t, "cut off", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}, os.Environ()...)
	if err := cmd.Start(); err != nil {
		t.Skipf("hardware: no network of its own: %v", err)
	}
	require.NoError(t, cmd.Wait(), out.String())
	const why = "its loopback interface is down (ip link set lo up brings it up)\n"
	require.Equal(t, "boot: this host does not reach itself: "+why+
		"boot: rank 0 of 2: this host does not reach itself: "+why+
		"boot: rank 1 of 2: rank 0 at 127.0.0.1:29500 cannot be reached: this host does not reach itself: "+why+
		"in time true\n", out.String())
}
