package ckpt

import "github.com/goccl/goccl/train/ckpt/internal/float"

// chunk is how many bytes are converted at once.
const chunk = 64 << 10

// as does a read, and converts what it reads.
func (p *partFile) as(r read) error {
	k, n := dtypes[r.from], dtypes[r.to]
	return r.dst.Fill(func(b []byte, at int) error { return p.into(b, r.at+int64(at/n*k), r.from, r.to) })
}

// into fills dst with what is at a byte of p.
func (p *partFile) into(dst []byte, at int64, is, as string) error {
	if is == as {
		return p.read(dst, at)
	}
	if p.raw == nil {
		p.raw = make([]byte, chunk)
	}
	from, to := float.Types[is], float.Types[as]
	k, n := dtypes[is], dtypes[as]
	for len(dst) > 0 {
		raw := p.raw[:min(chunk/k, len(dst)/n)*k]
		if err := p.read(raw, at); err != nil {
			return err
		}
		at += int64(len(raw))
		for ; len(raw) > 0; raw, dst = raw[k:], dst[n:] {
			to.Put(dst, from.Get(raw))
		}
	}
	return nil
}
