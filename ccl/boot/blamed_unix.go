//go:build unix

package boot

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/internal/blame"
	"github.com/goccl/goccl/internal/environ"
)

// blamed is the pipe into which the ranks write whom their failures name, and spares that they were
// not needed. It is read once all have ended: what does not fit into it is lost, and the votes that
// fit are enough.
type blamed struct {
	r, w  *os.File
	inode uint64
	said  []byte // what was in it
}

// newBlamed is nil where there are no more descriptors: the job does without.
func newBlamed() *blamed {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer w.Close()
	// A rank must never wait here. Fd and Start would make the end that os.Pipe returned a blocking one.
	fd, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		r.Close()
		return nil
	}
	var st syscall.Stat_t
	if syscall.SetNonblock(fd, true) != nil || syscall.Fstat(fd, &st) != nil {
		r.Close()
		syscall.Close(fd)
		return nil
	}
	return &blamed{r: r, w: os.NewFile(uintptr(fd), "blame"), inode: uint64(st.Ino)}
}

// pass gives a rank the pipe, as the last of its files.
func (b *blamed) pass(files []*os.File, env []string) ([]*os.File, []string) {
	if b == nil {
		return files, env
	}
	const first = 3 // of the files that a process is given
	return append(files, b.w), append(env, environ.BlameFD.Set(blame.Value(first+len(files), b.inode)))
}

// rank is the rank of size that most of the others name.
func (b *blamed) rank(size int) (rank int, ok bool) {
	if b == nil {
		return 0, false
	}
	return blame.Most(b.text(), size)
}

// unused says which of size ranks were spares that nobody needed, as they say.
func (b *blamed) unused(size int) []bool {
	if b == nil {
		return make([]bool, size)
	}
	return blame.AreUnused(b.text(), size)
}

// text is all that was written by now.
func (b *blamed) text() []byte {
	fd := int(b.r.Fd())
	if syscall.SetNonblock(fd, true) != nil { // w is open here: the end of what there is must not be waited for
		return b.said
	}
	for buf := make([]byte, 4096); ; {
		n, err := syscall.Read(fd, buf)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if n <= 0 {
			return b.said
		}
		b.said = append(b.said, buf[:n]...)
	}
}

func (b *blamed) close() {
	if b != nil {
		b.r.Close()
		b.w.Close()
	}
}
