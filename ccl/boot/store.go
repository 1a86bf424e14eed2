package boot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// Store is a place where the ranks of a job leave values for each other, by key: that of another
// runtime, such as PyTorch's, or a service. All ranks see the same values.
type Store interface {
	// Set gives key a value. NewStore sets each of its keys once.
	Set(ctx context.Context, key string, value []byte) error
	// Get returns the value of key. It waits until there is one, or ctx ends.
	Get(ctx context.Context, key string) ([]byte, error)
	// Wait waits until all of the keys have values, or ctx ends.
	Wait(ctx context.Context, keys ...string) error
	// Add adds n to the number that key has, 0 at first, and returns the sum.
	Add(ctx context.Context, key string, n int64) (int64, error)
}

// Stored is a bootstrap over a Store.
type Stored struct {
	s          Store
	prefix     string
	rank, size int
	round      uint64
}

// NewStore returns the bootstrap of rank of size ranks that meet in s. They give the same prefix,
// which no other job in s has had: their keys begin with it. It uses Set and Get alone.
func NewStore(s Store, prefix string, rank, size int) (*Stored, error) {
	switch {
	case s == nil:
		return nil, errors.New("boot: the Store is nil")
	case size < 1 || rank < 0 || rank >= size:
		return nil, fmt.Errorf("boot: there is no rank %d of %d", rank, size)
	}
	return &Stored{s: s, prefix: prefix, rank: rank, size: size}, nil
}

// Rank returns this process's rank.
func (b *Stored) Rank() int { return b.rank }

// Size returns the number of ranks.
func (b *Stored) Size() int { return b.size }

// AllGather returns every rank's mine, indexed by rank. Rank 0 collects them, so that a rank more
// costs the store four requests, and not one for each pair.
func (b *Stored) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	if err := noContext(ctx); err != nil {
		return nil, err
	}
	b.round++
	key := func(who any) string { return fmt.Sprintf("%s/%d/%v", b.prefix, b.round, who) }
	all := make([][]byte, b.size)
	all[b.rank] = mine
	if b.rank > 0 {
		if err := b.s.Set(ctx, key(b.rank), mine); err != nil {
			return nil, b.failed("set", key(b.rank), err)
		}
		text, err := b.s.Get(ctx, key("all"))
		if err != nil {
			return nil, b.failed("get", key("all"), err)
		}
		if !unpack(text, all) {
			return nil, fmt.Errorf("boot: the store's value of %s is not what rank 0 has set", key("all"))
		}
		return all, nil
	}
	for r := 1; r < b.size; r++ {
		var err error
		if all[r], err = b.s.Get(ctx, key(r)); err != nil {
			return nil, b.failed("get", key(r), err)
		}
	}
	if b.size > 1 {
		if err := b.s.Set(ctx, key("all"), pack(all)); err != nil {
			return nil, b.failed("set", key("all"), err)
		}
	}
	return all, nil
}

func (b *Stored) failed(what, key string, err error) error {
	return fmt.Errorf("boot: rank %d of %d: the store cannot %s %s: %w", b.rank, b.size, what, key, err)
}

// pack writes values behind each other, each behind its length.
func pack(values [][]byte) (b []byte) {
	for _, v := range values {
		b = binary.AppendUvarint(b, uint64(len(v)))
		b = append(b, v...)
	}
	return b
}

// unpack reads what pack has written, of exactly so many values.
func unpack(b []byte, values [][]byte) bool {
	for i := range values {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return false
		}
		values[i], b = b[used:used+int(n)], b[used+int(n):]
	}
	return len(b) == 0
}
