package ckpt

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/goccl/goccl/internal/files"
)

// block is what has one checksum.
const block = 4 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// disk is what Save does to files. fault, of tests, is asked before each write, sync and rename.
type disk struct {
	fault  func(op, path string) error
	header int  // the longest that Export writes; 0: maxHeader
	atOnce int  // of what ranks hold; 0: atOnce
	direct bool // past the page cache, where that can be: it takes less of the processors, and leaves the cache to others
}

func (d *disk) ask(op, path string) error {
	if d.fault == nil {
		return nil
	}
	return d.fault(op, path)
}

func partName(rank, size int) string {
	return fmt.Sprintf("part-%05d-of-%05d.safetensors", rank+1, size)
}

// makeAbove makes dir and what is missing above it, each durable before what it holds.
func (d *disk) makeAbove(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	above := filepath.Dir(dir)
	if err := d.makeAbove(above); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return d.syncDir(above)
}

func (d *disk) discard(_, tmp string) { _ = os.RemoveAll(tmp) }

// summer writes to a file, or elsewhere, and sums its blocks.
type summer struct {
	d    *disk
	f    *os.File
	to   io.Writer // in the place of f
	n    int64
	sums []uint32
	buf  []byte // a block, aligned, of a file that is opened for direct writes
}

func (s *summer) Write(b []byte) (int, error) {
	for done := 0; done < len(b); {
		at := int(s.n % block)
		if at == 0 {
			s.sums = append(s.sums, 0)
		}
		out := b[done:min(len(b), done+block-at)]
		last := &s.sums[len(s.sums)-1]
		*last = crc32.Update(*last, castagnoli, out)
		done, s.n = done+len(out), s.n+int64(len(out))
		if s.buf != nil {
			copy(s.buf[at:], out)
			if s.n%block != 0 {
				continue
			}
			out = s.buf
		}
		if err := s.put(out); err != nil {
			return done, err
		}
	}
	return len(b), nil
}

// put writes a block, or the rest that there is of one.
func (s *summer) put(b []byte) error {
	if s.to != nil {
		_, err := s.to.Write(b)
		return err
	}
	if err := s.d.ask("write", s.f.Name()); err != nil {
		return err
	}
	n, err := s.f.Write(b)
	if s.buf != nil && n == 0 && errors.Is(err, syscall.EINVAL) { // a file system that opens the file, and cannot
		if err = notDirect(s.f); err == nil {
			_, err = s.f.Write(b)
		}
	}
	return err
}

// rest writes what is in the buffer.
func (s *summer) rest() error {
	k := s.n % block
	if s.buf == nil || k == 0 {
		return nil
	}
	if err := notDirect(s.f); err != nil {
		return err
	}
	return s.put(s.buf[:k])
}

// create writes a file of the attempt tmp.
func (d *disk) create(_, tmp, name string, _ int64, f func(io.Writer) error) (file, error) {
	s, err := d.write(filepath.Join(tmp, name), f)
	if err != nil {
		return file{}, err
	}
	return file{name, s.n, s.sums}, nil
}

// publish writes the index, and gives tmp its name.
func (d *disk) publish(dir, tmp string, ix *index) error {
	if _, err := d.write(filepath.Join(tmp, indexName), ix.write); err != nil {
		return d.lost(tmp, err)
	}
	return d.rename(dir, tmp)
}

// write writes a file by f, and syncs it.
func (d *disk) write(name string, f func(io.Writer) error) (_ *summer, err error) {
	s := &summer{d: d}
	if d.direct && direct != 0 {
		s.f, err = files.New(name, os.O_WRONLY|direct, 0o666)
		switch {
		case err == nil:
			const page = 4096
			b := make([]byte, block+page)
			s.buf = b[page-int(uintptr(unsafe.Pointer(&b[0]))%page):][:block]
		case errors.Is(err, syscall.EINVAL): // a file system that cannot; some make the file before they say so
			_ = os.Remove(name)
		default:
			return nil, err
		}
	}
	if s.buf == nil {
		if s.f, err = files.New(name, os.O_WRONLY, 0o666); err != nil {
			return nil, err
		}
	}
	defer func() { err = errors.Join(err, s.f.Close()) }()
	if err := f(s); err != nil {
		return nil, err
	}
	if err := s.rest(); err != nil {
		return nil, err
	}
	if err := d.ask("sync", name); err != nil {
		return nil, err
	}
	return s, s.f.Sync()
}

// syncDir makes names in dir durable. Windows has no such call.
func (d *disk) syncDir(dir string) error {
	if err := d.ask("sync", dir); err != nil || runtime.GOOS == "windows" {
		return err
	}
	f, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
