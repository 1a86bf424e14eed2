package ddp

import (
	"context"
	"fmt"
	"hash/crc32"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/raw"
)

// groupBytes is how much Broadcast hands over at once.
const groupBytes = 250 << 20

// Broadcast copies root's bufs of host memory to every rank: the initial state, as groups of at
// most 250 MiB, or one buf. If ctx ends in it, the Comm fails.
func Broadcast(ctx context.Context, c *ccl.Comm, bufs []ccl.Buf, root int) error {
	q := c.On(nil)
	for len(bufs) > 0 {
		n, bytes := 0, 0
		for n < len(bufs) && (n == 0 || bytes+bufs[n].Len()*bufs[n].Type().Size() <= groupBytes) {
			bytes += bufs[n].Len() * bufs[n].Type().Size()
			n++
		}
		w := q.Group(func(g ccl.Queue) error {
			for _, b := range bufs[:n] {
				g.Broadcast(b, root)
			}
			return nil
		})
		if err := w.Wait(ctx); err != nil {
			c.Abort(err) // the other ranks may have groups to come
			_ = w.Wait(context.Background())
			return fmt.Errorf("ddp: Broadcast: %w", err)
		}
		bufs = bufs[n:]
	}
	return nil
}

// Hash hashes the bits of s: the CRC-32C of its bytes, and above it their CRC-32, which together
// are a CRC of 64 bits. Processors compute both, at about the speed of memory. Equal parameters
// hash equal on every little-endian machine, however they are cut into slices.
func Hash[T ccl.Number](s ...[]T) uint64 {
	low, high := uint32(0), uint32(0)
	for _, x := range s {
		b, _ := raw.Bytes(ccl.BufOf(x))
		for len(b) > 0 { // by parts that stay in the cache for the second
			n := min(len(b), hashed)
			low, high = crc32.Update(low, castagnoli, b[:n]), crc32.Update(high, crc32.IEEETable, b[:n])
			b = b[n:]
		}
	}
	return uint64(high)<<32 | uint64(low)
}

// hashed is how many bytes Hash takes at once.
const hashed = 16 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Same returns an error, on all ranks, that lists the ranks whose h is not the most common one. It is collective.
func Same(ctx context.Context, c *ccl.Comm, h uint64) error {
	all := make([]uint64, c.Size())
	if err := ccl.AllGather(ctx, c, all, []uint64{h}); err != nil {
		return fmt.Errorf("ddp: Same: %w", err)
	}
	count, best := map[uint64]int{}, all[0]
	for _, x := range all {
		count[x]++
	}
	for _, x := range all {
		if count[x] > count[best] {
			best = x
		}
	}
	var odd []int
	for r, x := range all {
		if x != best {
			odd = append(odd, r)
		}
	}
	if odd != nil {
		return fmt.Errorf("ddp: the replicas differ: ranks %d of %d hold different bits from the rest", odd, c.Size())
	}
	return nil
}
