//go:build !unix

package boot

import (
	"net"
	"os"
	"os/exec"
)

// What this package does without where the system is no Unix.

// blamed is for systems on which processes inherit files.
type blamed struct{}

func newBlamed() *blamed { return nil }

func (*blamed) pass(files []*os.File, env []string) ([]*os.File, []string) { return files, env }
func (*blamed) rank(int) (int, bool)                                       { return 0, false }
func (*blamed) unused(size int) []bool                                     { return make([]bool, size) }
func (*blamed) close()                                                     {}

// private trusts the directory: its access list says who may write there.
func private(*os.File) error { return nil }

// guard is for systems with process groups.
type guard struct{}

func newGuard() *guard { return nil }

func (*guard) add(int)  {}
func (*guard) gone(int) {}
func (*guard) dismiss() {}

func inheritedListener(int) (net.Listener, error) { return nil, errNoInherit }

func inheritedConn(int) (net.Conn, error) { return nil, errNoInherit }

// privatePlaces are none: ranks meet at no Unix sockets here.
type privatePlaces struct {
	name   string
	getenv func(string) string
}

func (privatePlaces) paths() []string      { return nil }
func (privatePlaces) listen() net.Listener { return nil }

// storeDirs and the others trust the directory: its access list says who may write there.
func storeDirs(dir string) []string           { return []string{dir} }
func makeStoreDir(dir string) (string, error) { return dir, nil }
func oneStoreDir(dir string) (string, error)  { return dir, nil }

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

// controls is false: a console is read by all of its processes.
func controls(*os.File) bool { return false }

type foreground struct{ *os.File }
