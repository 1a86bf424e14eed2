package launch

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/environ"
)

// The values of environ.BenchBind, which tells a rank to bind itself to a core: that of its rank, where
// all are on one machine whatever they believe, or that of its local rank.
const (
	byRank  = "rank"
	byLocal = "local"
)

// execCommand is the command by which bench checks and binds another program before it
// becomes it: bench _exec SHA256|"" PROGRAM ARGS.
const execCommand = "_exec"

// Bind binds this process to a core of its own if it was told to. Left alone, the kernel moves
// ranks about, and two that spin on one core for a moment take milliseconds for what takes half a
// microsecond. Where there are too few cores nothing happens.
func Bind(getenv func(string) string, l boot.Launch) error {
	i, n := -1, 0
	switch environ.BenchBind.Text(getenv) {
	case byRank:
		i, n = l.Rank, l.Size
	case byLocal:
		i, n = l.Local, l.Locals
	}
	if i < 0 || i >= n {
		return nil
	}
	return bindTo(i, n)
}

// Become is bench _exec: it returns only what went wrong.
func Become(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("%s is bench's own: it takes a sum and a program", execCommand)
	}
	path, err := exec.LookPath(args[1])
	if err != nil {
		return err
	}
	if args[0] != "" {
		if err := verify(path, args[0]); err != nil {
			return err
		}
	}
	l, err := boot.Detect(os.Getenv)
	if err != nil {
		return err
	}
	if err := Bind(os.Getenv, l); err != nil {
		return err
	}
	return become(path, args[1:], os.Environ())
}
