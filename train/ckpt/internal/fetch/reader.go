package fetch

import (
	"context"
	"fmt"
	"strings"

	"github.com/goccl/goccl/train/ckpt/store"
)

// Reader reads a rank's own Store. It keeps the object open that it has read last.
type Reader struct {
	Store store.Store
	Rank  int
	name  string
	o     store.Object
	buf   []byte
}

// disk is how an error of a rank's disk begins.
const disk = "the disk of rank "

// OnDisk is err, of the disk of a rank, unless err says already which disk it is of.
func OnDisk(rank int, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), disk) {
		return err
	}
	return fmt.Errorf(disk+"%d: %w", rank, err)
}

// room is memory for n bytes, which a later call takes again.
func (r *Reader) room(n int) []byte {
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	return r.buf[:n]
}

// Read fills b from byte at of the object on.
func (r *Reader) Read(ctx context.Context, name string, b []byte, at int64) error {
	if r.o == nil || r.name != name {
		r.Close()
		o, err := r.Store.Open(ctx, name)
		if err != nil {
			return OnDisk(r.Rank, err)
		}
		r.o, r.name = o, name
	}
	if n, err := r.o.ReadAt(b, at); n < len(b) {
		return OnDisk(r.Rank, fmt.Errorf("read %s at byte %d: %w", name, at, err))
	}
	return nil
}

// Close closes the object.
func (r *Reader) Close() {
	if r.o != nil {
		_ = r.o.Close()
		r.o = nil
	}
}
