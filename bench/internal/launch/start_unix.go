//go:build unix

package launch

import (
	"os"
	"syscall"
)

// terminate asks a launcher to end, which ends its ranks.
func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// become runs another program in this process.
func become(path string, args, env []string) error { return syscall.Exec(path, args, env) }
