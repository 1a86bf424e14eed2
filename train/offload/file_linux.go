package offload

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const directFlag = unix.O_DIRECT

// Reserve has the file system keep the room, if it can: else a disk that is full is found by a write.
func (l *local) Reserve(n int64) error {
	if n == 0 {
		return nil
	}
	for {
		err := unix.Fallocate(int(l.Fd()), 0, 0, n)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return l.Truncate(n)
		case err != nil:
			return &os.PathError{Op: "fallocate", Path: l.Name(), Err: err}
		default:
			return nil
		}
	}
}

// Drop has what was written reach the disk first, since dirty pages stay.
func (l *local) Drop(off, n int64) error {
	if l.past {
		return nil
	}
	const now = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	if err := unix.SyncFileRange(int(l.Fd()), off, n, now); err != nil {
		if errors.Is(err, unix.EIO) || errors.Is(err, unix.ENOSPC) {
			return &os.PathError{Op: "write", Path: l.Name(), Err: err}
		}
		return nil // a file system that has no such call keeps its pages
	}
	_ = unix.Fadvise(int(l.Fd()), off, n, unix.FADV_DONTNEED)
	return nil
}
