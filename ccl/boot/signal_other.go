//go:build !unix

package boot

import (
	"net"
	"os"
	"os/exec"
)

// forwarded is only watched: the console tells the ranks itself.
var forwarded = []os.Signal{os.Interrupt}

var terminate = os.Kill

func endsRanks(os.Signal) bool { return true }

func signalGroup(cmd *exec.Cmd, sig os.Signal) {
	if sig == os.Kill {
		cmd.Process.Kill()
	}
}

func signalOf(*os.ProcessState) os.Signal { return nil }

func listenerFile(net.Listener) (*os.File, error) { return nil, nil }
