package offload

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/goccl/goccl/internal/files"
)

// file is what a Disk writes to.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
	// Reserve gives the file so many bytes, zeros.
	Reserve(n int64) error
	// Direct: memory, places and lengths must be multiples of a block.
	Direct() bool
	// Drop says that the page cache need not keep what was read or written there.
	Drop(off, n int64) error
}

// local is a file of the system's.
type local struct {
	*os.File
	past bool // the page cache
}

func (l *local) Direct() bool { return l.past }

// Close removes the file as well, where that could not be done before.
func (l *local) Close() error {
	err := l.File.Close()
	if runtime.GOOS == "windows" {
		err = errors.Join(err, os.Remove(l.Name()))
	}
	return err
}

// open makes a file in dir that nobody else sees. If direct is set, the file goes past the page cache,
// unless the system or the file system cannot: that may be found by the first read alone.
var open = func(dir string, rank int, direct bool) (file, error) {
	if direct && directFlag != 0 {
		l, err := create(dir, rank, directFlag)
		if err == nil {
			if err = l.probe(); err == nil {
				return l, nil
			}
			l.Close()
		}
		if !errors.Is(err, syscall.EINVAL) {
			return nil, err
		}
	}
	return create(dir, rank, 0)
}

// create makes a file, and takes its name away where the system allows that of an open file.
func create(dir string, rank, flag int) (*local, error) {
	name := filepath.Join(dir, fmt.Sprintf("goccl-rank%d-%s", rank, rand.Text()[:10]))
	f, err := files.New(name, os.O_RDWR|flag, 0o600)
	if err != nil {
		if flag != 0 {
			_ = os.Remove(name) // some file systems make the file before they refuse the flag
		}
		return nil, err
	}
	if runtime.GOOS != "windows" {
		if err := os.Remove(name); err != nil {
			f.Close()
			return nil, err
		}
	}
	return &local{f, flag != 0}, nil
}

// probe writes and reads a block.
func (l *local) probe() error {
	b := aligned(block)
	_, err := l.WriteAt(b, 0)
	if err == nil {
		_, err = l.ReadAt(b, 0)
	}
	return err
}
