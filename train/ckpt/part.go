package ckpt

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// partFile is a part that is read, a block at a time.
type partFile struct {
	opened
	name string
	f    *file
	buf  []byte
	have int64  // the block in buf; -1: none
	raw  []byte // what is converted
}

// openPart opens a part that has its size.
func openPart(src source, f *file) (*partFile, error) {
	o, err := f.open(src)
	if err != nil {
		return nil, err
	}
	return &partFile{o, src.path(f.Name), f, nil, -1, nil}, nil
}

// block verifies block k, and returns it.
func (p *partFile) block(k int64) ([]byte, error) {
	if p.buf == nil {
		p.buf = make([]byte, min(block, p.f.Size))
	}
	b := p.buf[:min(block, p.f.Size-k*block)]
	if k == p.have {
		return b, nil
	}
	p.have = -1
	if _, err := p.ReadAt(b, k*block); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is truncated: it should have %d bytes", p.name, p.f.Size)
	} else if err != nil {
		return nil, err
	}
	if p.f.Sums != nil && crc32.Checksum(b, castagnoli) != p.f.Sums[k] {
		return nil, fmt.Errorf("%s is damaged between bytes %d and %d", p.name, k*block, k*block+int64(len(b)))
	}
	p.have = k
	return b, nil
}

// read fills dst from byte at on.
func (p *partFile) read(dst []byte, at int64) error {
	for len(dst) > 0 {
		k := at / block
		b, err := p.block(k)
		if err != nil {
			return err
		}
		n := copy(dst, b[at-k*block:])
		dst, at = dst[n:], at+int64(n)
	}
	return nil
}
