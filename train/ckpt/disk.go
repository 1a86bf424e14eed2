package ckpt

import (
	"context"
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
	"github.com/goccl/goccl/train/internal/same"
)

// block is what has one checksum.
const block = 4 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// disk is what Save does to files. fault, of tests, is asked before each write, sync and rename.
type disk struct {
	fault  func(op, path string) error
	header int             // the longest that Export writes; 0: maxHeader
	atOnce int             // of what ranks hold; 0: atOnce
	direct bool            // past the page cache, where that can be: it takes less of the processors
	ctx    context.Context // of a Save, between two blocks; nil: none
	silent error           // it has not answered
}

// do does f, which is one operation op on path, or with an op of "" a part of one.
func (d *disk) do(op, path string, f func() error) error {
	if d.silent != nil {
		return d.silent
	}
	if d.ctx != nil && d.ctx.Err() != nil {
		return d.ctx.Err()
	}
	err := same.Do(path, func() error {
		if op != "" && d.fault != nil {
			if err := d.fault(op, path); err != nil {
				return err
			}
		}
		return f()
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		d.silent = err
	}
	return err
}

func partName(rank, size int) string {
	return fmt.Sprintf("part-%05d-of-%05d.safetensors", rank+1, size)
}

// makeAbove makes dir and what is missing above it, each durable before what it holds.
func (d *disk) makeAbove(dir string) error {
	err := d.do("", dir, func() error { _, err := os.Stat(dir); return err })
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	above := filepath.Dir(dir)
	if err := d.makeAbove(above); err != nil {
		return err
	}
	if err := d.mkdir(dir); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return d.syncDir(above)
}

func (d *disk) mkdir(dir string) error {
	return d.do("", dir, func() error { return os.Mkdir(dir, 0o777) })
}

// remove removes a directory, a file at a time: each is an answer.
func (d *disk) remove(dir string) error {
	es, _ := os.ReadDir(dir)
	for _, e := range es {
		name := filepath.Join(dir, e.Name())
		_ = d.do("", name, func() error { return os.Remove(name) })
	}
	return d.do("", dir, func() error { return files.RemoveAll(dir) })
}

// discard removes tmp. What a disk that answers nothing has goes with the next Save, or by Keep.
func (d *disk) discard(_, tmp string) {
	if d.silent == nil {
		_ = same.Do(tmp, func() error { return os.RemoveAll(tmp) })
	}
}

// summer writes to a file, or elsewhere, and sums its blocks.
type summer struct {
	d    *disk
	f    *os.File
	to   io.Writer // in the place of f
	n    int64
	sums []uint32
	buf  []byte // a block, aligned, of a file that is opened for direct writes
	late bool   // writes are to the page cache
}

// dirty is what may be in the page cache: what a slow disk can take while a sync is waited for.
const dirty = 128 * block

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
	return s.d.do("write", s.f.Name(), func() error {
		n, err := s.f.Write(b)
		if s.buf != nil && n == 0 && errors.Is(err, syscall.EINVAL) { // a file system that opens the file, and cannot
			if err = notDirect(s.f); err == nil {
				s.late = true
				_, err = s.f.Write(b)
			}
		}
		if err == nil && s.late && s.n%dirty == 0 {
			err = s.f.Sync()
		}
		return err
	})
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
	if err := d.do("", name, func() error { return s.open(name) }); err != nil {
		return nil, err
	}
	defer func() {
		if d.silent != nil { // the file is closed when the disk answers
			go s.f.Close()
			return
		}
		err = errors.Join(err, same.Do(name, s.f.Close))
	}()
	if err := f(s); err != nil {
		return nil, err
	}
	if err := s.rest(); err != nil {
		return nil, err
	}
	return s, d.do("sync", name, s.f.Sync)
}

// open makes the file.
func (s *summer) open(name string) (err error) {
	if s.d.direct && direct != 0 {
		s.f, err = files.New(name, os.O_WRONLY|direct, 0o666)
		if err == nil {
			const page = 4096
			b := make([]byte, block+page)
			s.buf = b[page-int(uintptr(unsafe.Pointer(&b[0]))%page):][:block]
			return nil
		}
		if !errors.Is(err, syscall.EINVAL) {
			return err
		}
		_ = os.Remove(name) // a file system that cannot; some make the file before they say so
	}
	s.late = true
	s.f, err = files.New(name, os.O_WRONLY, 0o666)
	return err
}

// syncDir makes names in dir durable. Windows has no such call.
func (d *disk) syncDir(dir string) error {
	return d.do("sync", dir, func() error {
		if runtime.GOOS == "windows" {
			return nil
		}
		f, err := files.OpenDir(dir)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
