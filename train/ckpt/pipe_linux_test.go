package ckpt

import (
	"os"
	"path/filepath"
	"syscall"
)

// linkToPipe makes name a link to a pipe that nobody writes to.
func linkToPipe(name string) error {
	pipe := filepath.Join(filepath.Dir(name), "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		return err
	}
	return os.Symlink(pipe, name)
}
