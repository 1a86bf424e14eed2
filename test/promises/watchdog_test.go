//go:build linux

package promises

import (
	"fmt"
	"os"
	"os/exec"
)

// watchdog kills this process a few seconds from now, also if it is stopped: what the test
// waits for is the end of all.
func watchdog() {
	kill := exec.Command("sh", "-c", fmt.Sprintf("sleep 4; kill -KILL %d", os.Getpid()))
	kill.Start() // it outlives this process
}
