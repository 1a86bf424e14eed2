//go:build !unix

package launch

import (
	"errors"
	"os"
)

// terminate ends a launcher.
func terminate(p *os.Process) error { return p.Kill() }

// become is not possible here.
func become(string, []string, []string) error {
	return errors.New("this system cannot replace one program with another; leave -bind and -share out")
}
