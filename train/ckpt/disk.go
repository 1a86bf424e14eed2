package ckpt

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// block is what has one checksum.
const block = 4 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// disk is what Save does to files. fault, of tests, is asked before each write, sync and rename.
type disk struct {
	fault func(op, path string) error
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

// begin makes tmp anew.
func (d *disk) begin(dir, tmp string) error {
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s is there already", dir)
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	return os.MkdirAll(tmp, 0o777)
}

func (d *disk) discard(tmp string) { _ = os.RemoveAll(tmp) }

// summer writes to a file, and sums its blocks.
type summer struct {
	d    *disk
	f    *os.File
	n    int64
	sums []uint32
}

func (s *summer) Write(b []byte) (int, error) {
	for done := 0; done < len(b); {
		if s.n%block == 0 {
			s.sums = append(s.sums, 0)
		}
		k := min(len(b)-done, int(block-s.n%block))
		if err := s.d.ask("write", s.f.Name()); err != nil {
			return done, err
		}
		n, err := s.f.Write(b[done : done+k])
		if err != nil {
			return done + n, err
		}
		last := &s.sums[len(s.sums)-1]
		*last = crc32.Update(*last, castagnoli, b[done:done+k])
		done, s.n = done+k, s.n+int64(k)
	}
	return len(b), nil
}

// create writes a file by f, and syncs it.
func (d *disk) create(name string, f func(*summer) error) (s *summer, err error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	s = &summer{d: d, f: file}
	if err := f(s); err != nil {
		return nil, err
	}
	if err := d.ask("sync", name); err != nil {
		return nil, err
	}
	return s, file.Sync()
}

// write writes a rank's part: the planned pieces, out of ts.
func (d *disk) write(tmp, name string, planned, mine []piece, ts []Tensor) (part, error) {
	head, data, at := map[string]any{}, [][]byte(nil), int64(0)
	for i := range planned {
		p := &planned[i]
		k := slices.IndexFunc(mine, func(m piece) bool {
			return m.Name == p.Name && slices.Equal(m.Offset, p.Offset) && slices.Equal(m.Size, p.Size) && m.Lo <= p.Lo && p.Hi <= m.Hi
		})
		if k < 0 {
			return part{}, fmt.Errorf("tensor %q: nothing here for elements %d to %d", p.Name, p.Lo, p.Hi)
		}
		size := dtypes[p.Type]
		b := bytesOf(ts[k].Data)[(p.Lo-mine[k].Lo)*size : (p.Hi-mine[k].Lo)*size]
		shape := []int{p.Hi - p.Lo}
		if p.Lo == 0 && p.Hi == prod(p.Size) {
			shape = p.Size
		}
		head[fmt.Sprintf("%s#%v+%v[%d:%d]", p.Name, p.Offset, p.Size, p.Lo, p.Hi)] = map[string]any{
			"dtype": p.Type, "shape": shape, "data_offsets": []int64{at, at + int64(len(b))}}
		p.At, data = at, append(data, b)
		at += int64(len(b))
	}
	text, err := json.Marshal(head)
	if err != nil {
		return part{}, err
	}
	text = append(text, strings.Repeat(" ", (8-len(text)%8)%8)...)
	text = append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	for i := range planned {
		planned[i].At += int64(len(text))
	}
	s, err := d.create(filepath.Join(tmp, name), func(s *summer) error {
		for _, b := range append([][]byte{text}, data...) {
			if _, err := s.Write(b); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return part{}, err
	}
	return part{file: file{name, s.n, s.sums}, Pieces: planned}, nil
}

// finish writes the index, and gives tmp its name.
func (d *disk) finish(dir, tmp string, ix *index) error {
	text, err := ix.text()
	if err != nil {
		return err
	}
	_, err = d.create(filepath.Join(tmp, indexName), func(s *summer) error { _, err := s.Write(text); return err })
	if err != nil {
		return err
	}
	if err := d.syncDir(tmp); err != nil {
		return err
	}
	if err := d.ask("rename", dir); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(dir))
}

// syncDir makes names in dir durable. Windows has no such call.
func (d *disk) syncDir(dir string) error {
	if err := d.ask("sync", dir); err != nil || runtime.GOOS == "windows" {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// read wants dst from byte at of a part on.
type read struct {
	at   int64
	dst  []byte
	name string
}

// readPart does the reads of one part, and verifies each block that they touch.
func readPart(dir string, f *file, rs []read) (err error) {
	if len(rs) == 0 {
		return nil
	}
	name := filepath.Join(dir, f.Name)
	slices.SortFunc(rs, func(a, b read) int { return cmp.Compare(a.at, b.at) })
	o, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", rs[0].name, err)
	}
	defer o.Close()
	buf, have := make([]byte, min(block, f.Size)), int64(-1)
	for _, r := range rs {
		for len(r.dst) > 0 {
			k := r.at / block
			b := buf[:min(block, f.Size-k*block)]
			if k != have {
				if _, err := o.ReadAt(b, k*block); errors.Is(err, io.EOF) {
					return fmt.Errorf("%s: tensor %q: the file is truncated: it should have %d bytes", name, r.name, f.Size)
				} else if err != nil {
					return fmt.Errorf("%s: tensor %q: %w", name, r.name, err)
				}
				if crc32.Checksum(b, castagnoli) != f.Sums[k] {
					return fmt.Errorf("%s: tensor %q: the file is damaged between bytes %d and %d", name, r.name, k*block, k*block+int64(len(b)))
				}
				have = k
			}
			n := copy(r.dst, b[r.at-k*block:])
			r.dst, r.at = r.dst[n:], r.at+int64(n)
		}
	}
	return nil
}
