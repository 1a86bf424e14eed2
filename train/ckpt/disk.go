package ckpt

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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

func (d *disk) discard(tmp string) { _ = os.RemoveAll(tmp) }

// summer writes to a file, and sums its blocks.
type summer struct {
	d    *disk
	f    *os.File
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

// create writes a file by f, and syncs it.
func (d *disk) create(name string, f func(io.Writer) error) (_ *summer, err error) {
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

// write writes a rank's part: what it is told to, of the pieces mine, whose memory is data, and
// own, the state of the rank.
func (d *disk) write(o orders, name string, mine []piece, data [][]byte, own []byte) (part, error) {
	out := make([][]byte, 0, len(o.Tasks)+1)
	for _, t := range o.Tasks {
		if t.Of < 0 || t.Of >= len(mine) || t.Lo < mine[t.Of].Lo || t.Hi > mine[t.Of].Hi || t.Hi < t.Lo {
			return part{}, fmt.Errorf("there is no data for elements %d to %d of piece %d", t.Lo, t.Hi, t.Of)
		}
		p := &mine[t.Of]
		size := dtypes[p.Type]
		out = append(out, data[t.Of][(t.Lo-p.Lo)*size:(t.Hi-p.Lo)*size])
	}
	n := len(o.Tasks)
	if own != nil {
		n, out = n+1, append(out, own)
	}
	h := newHeader(n, func(i int) entry {
		if i == len(o.Tasks) {
			return entry{stateName, "U8", []int{len(own)}}
		}
		t := o.Tasks[i]
		p := &mine[t.Of]
		shape := []int{t.Hi - t.Lo}
		if t.Lo == 0 && t.Hi == prod(p.Size) {
			shape = p.Size
		}
		return entry{fmt.Sprintf("%s#%v+%v[%d:%d]", p.Name, p.Offset, p.Size, t.Lo, t.Hi), p.Type, shape}
	})
	s, err := d.create(filepath.Join(o.Tmp, name), func(w io.Writer) error {
		if err := h.write(w); err != nil {
			return err
		}
		small := bufio.NewWriterSize(w, 64<<10) // of a million tensors most have a few bytes; what is larger goes past it
		for _, b := range out {
			if _, err := small.Write(b); err != nil {
				return err
			}
		}
		return small.Flush()
	})
	if err != nil {
		return part{}, err
	}
	return part{file{name, s.n, s.sums}, h.size, int64(len(own))}, nil
}

// finish writes the index, with what the ranks say of their parts, and gives tmp its name.
func (d *disk) finish(dir, tmp string, ix *index, parts [][]byte) error {
	at, own := make([]int64, len(parts)), make([]int64, len(parts))
	for r, text := range parts {
		p, err := decode[part](text)
		if err != nil {
			return err
		}
		ix.Files, at[r], own[r] = append(ix.Files, p.File), p.Header, p.Own
	}
	for i := range ix.Pieces { // which each rank has written in this order
		p := &ix.Pieces[i]
		p.At = at[p.File]
		at[p.File] += int64((p.Hi - p.Lo) * dtypes[p.Type])
	}
	if slices.Max(own) > 0 { // and after it the rank's state
		for r := range own {
			ix.Own = append(ix.Own, span{at[r], own[r]})
		}
	}
	if _, err := d.create(filepath.Join(tmp, indexName), ix.write); err != nil {
		return lost(tmp, err)
	}
	return d.publish(dir, tmp)
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
