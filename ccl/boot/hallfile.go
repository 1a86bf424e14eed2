package boot

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccl/goccl/internal/files"
)

// A hall's file is a list of what was set and added, oldest first:
//
//	length of the request 4, CRC-32C of these 4, CRC-32C of the request 4, request
//
// A process that ends while it writes leaves half an entry at the end, which is dropped. The length has a sum of its
// own, so that a damaged length in the middle is not taken for such an end, and what follows it for nothing.
const (
	entryHead = 12
	mostEntry = requestHead + MaxKey + MaxStored
)

// ListenHallFile is [ListenHall] of a hall whose state is in a file as well, so that it survives the process: another
// ListenHallFile with the same file goes on from it. So a job that runs, and processes that wait for it, outlive a
// hall that is started again at the same address; while it is away nobody can come. The file belongs to one job, and
// to one hall at a time: another is refused, at whichever address, where the system and the file's file system have
// flock(2). Only its owner may read it: it has the secrets of meetings. It survives the end of the
// process at any moment; what was written in the last seconds before the machine itself stopped may be lost.
func ListenHallFile(addr string, secret []byte, file string) (*Hall, error) {
	p, err := ofJob(secret, os.Environ())
	if err != nil {
		return nil, err
	}
	l, err := listenerOf(os.Getenv, addr, p) // first: a hall that runs at addr has the file
	if err != nil {
		return nil, err
	}
	state, err := openHallFile(file, p.job)
	if err != nil {
		l.Close()
		return nil, fault(System, "the hall's file: %v", err)
	}
	return serveHall(l, p, state), nil
}

// jobKey is under which a hall's file has the name of its job.
const jobKey = "goccl/hall/job"

// openHallFile reads the file of the hall of that job, and writes it anew, as short as it can be.
func openHallFile(file, job string) (s memoryStore, err error) {
	s = newMemoryStore()
	old, err := lockHallFile(file)
	if err != nil {
		return s, err
	}
	defer old.Close() // once next, which is locked, has its name
	if err = private(old); err == nil {
		err = s.replay(bufio.NewReader(old))
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	if of, known := s.values[jobKey]; known && string(of) != job {
		return s, fmt.Errorf("%s: %s", file, otherJob(string(of), job))
	}
	if err := s.put(jobKey, []byte(job)); err != nil {
		return s, err
	}
	next, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*") // which only its owner can read
	if err != nil {
		return s, err
	}
	s.log = next
	if err = lock(next); err == nil {
		err = s.rewrite()
	}
	if err == nil {
		err = next.Sync() // else a machine that stops may leave an empty file in the place of the old one
	}
	if err == nil {
		err = os.Rename(next.Name(), file)
	}
	if err != nil {
		next.Close()
		os.Remove(next.Name())
	}
	return s, err
}

// lockHallFile opens the file of a hall, an empty one if there is none, and locks it. A hall puts another file in its
// place, which it has locked before: so what has the name is locked for as long as a hall has it.
func lockHallFile(file string) (*os.File, error) {
	for {
		f, err := files.New(file, os.O_RDWR, 0o600)
		if errors.Is(err, fs.ErrExist) {
			f, err = files.Append(file)
		}
		if err != nil {
			return nil, err
		}
		err = lock(f)
		opened, oerr := f.Stat()
		named, nerr := os.Lstat(file)
		switch {
		case errors.Is(err, errLocked):
			err = fmt.Errorf("%s: another hall runs with it: end that, or give this one a file of its own", file)
		case errors.Is(nerr, fs.ErrNotExist): // since then
		case cmp.Or(err, oerr, nerr) != nil:
			err = fmt.Errorf("%s: %w", file, cmp.Or(err, oerr, nerr))
		case !opened.Mode().IsRegular():
			err = fmt.Errorf("%s: %w", file, files.ErrNotRegular)
		case os.SameFile(opened, named):
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

// errLocked is lock's error for a file that another has locked.
var errLocked = errors.New("it is locked")

// replay carries out the entries that r has. What is no entry ends the list, unless others follow: a machine that
// stops may leave zeros at the end.
func (s *memoryStore) replay(r *bufio.Reader) error {
	for {
		var head [entryHead]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return whole(err)
		}
		n := int64(binary.BigEndian.Uint32(head[:]))
		if n > mostEntry || crc32.Checksum(head[:4], castagnoli) != binary.BigEndian.Uint32(head[4:]) {
			if n <= mostEntry && zeros(r) {
				return nil
			}
			return errors.New("it is no file of a hall, or is damaged")
		}
		text, err := readBytes(r, n)
		if err != nil {
			return whole(err)
		}
		if crc32.Checksum(text, castagnoli) != binary.BigEndian.Uint32(head[8:]) {
			if zeros(r) {
				return nil
			}
			return errors.New("an entry is damaged")
		}
		b := bytes.NewReader(text)
		q, err := readRequest(b)
		if err != nil || b.Len() > 0 || q.what != askSet && q.what != askAdd {
			return errors.New("an entry is not one of a hall")
		}
		if q.what == askSet {
			err = s.put(q.key, q.value)
		} else {
			_, err = s.sum(q.key, q.n)
		}
		if err != nil {
			return err
		}
	}
}

// zeros reports whether r has nothing but zeros.
func zeros(r *bufio.Reader) bool {
	for {
		if b, err := r.ReadByte(); b != 0 || err != nil {
			return err == io.EOF
		}
	}
}

// whole is nil where a list has ended, in the middle of an entry or not.
func whole(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// rewrite writes what s has to its log.
func (s *memoryStore) rewrite() error {
	w := bufio.NewWriter(s.log)
	for key, value := range s.values {
		w.Write(logEntry(request{what: askSet, key: key, value: value}))
	}
	for key, n := range s.numbers {
		w.Write(logEntry(request{what: askAdd, key: key, n: n}))
	}
	return w.Flush()
}
