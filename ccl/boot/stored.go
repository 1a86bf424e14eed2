package boot

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/internal/plain"
)

// Stored is a bootstrap over a Store.
type Stored struct {
	s          Store
	prefix     string
	rank, size int
	round      uint64
}

// What a value of Stored begins with. A store that makes values up, such as empty ones for keys that
// nobody has set, is found out.
const (
	storedOne    = 'v' // one rank's value
	storedAll    = 'a' // all ranks' values
	storedFailed = 'f' // rank 0's verdict: why there are none
)

// NewStore returns the bootstrap of rank of size ranks that meet in s. They give the same prefix,
// which no other job in s has had: their keys begin with it. It uses Set and Get alone, and trusts
// what s says as far as it can be read: whoever can write there can keep the job from starting. The
// job's secret, which keeps strangers out, is that of s or of the environment. PyTorch's TCPStore,
// for one, asks nobody who he is, so the secret must not lie in it. The limit of AllGather is that
// of ctx, or DefaultLimit, even if a method of s does not return then; where rank 0 fails it tells
// the others why.
func NewStore(s Store, prefix string, rank, size int) (*Stored, error) {
	switch {
	case s == nil:
		return nil, fault(Argument, "the Store is nil")
	case size < 1 || rank < 0 || rank >= size:
		return nil, fault(Argument, "there is no rank %d of %d", rank, size)
	}
	return &Stored{s: s, prefix: prefix, rank: rank, size: size}, nil
}

// Rank returns this process's rank.
func (b *Stored) Rank() int { return b.rank }

// Size returns the number of ranks.
func (b *Stored) Size() int { return b.size }

// Secret returns that of the store, if it is a [Hall], or one that OpenStore returns; else nil.
func (b *Stored) Secret() []byte {
	switch s := b.s.(type) { // by type: a program's own store may embed this Stored
	case *Hall:
		return s.Secret()
	case *hallClient:
		return s.Secret()
	case *fileStore:
		return s.Secret()
	}
	return nil
}

// AllGather returns every rank's mine, indexed by rank. Rank 0 collects them, so that a rank more
// costs the store four requests, and not one for each pair.
func (b *Stored) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	if err := noContext(ctx); err != nil {
		return nil, err.of(b.rank, b.size)
	}
	ctx, cancel := limited(ctx, 0)
	defer cancel()
	b.round++
	all := make([][]byte, b.size)
	all[b.rank] = mine
	var e *Error
	if b.rank > 0 {
		e = b.give(ctx, mine, all)
	} else {
		e = b.collect(ctx, all)
	}
	if e != nil {
		return nil, e.of(b.rank, b.size)
	}
	return all, nil
}

func (b *Stored) key(who any) string { return fmt.Sprintf("%s/%d/%v", b.prefix, b.round, who) }

// give is AllGather on the ranks that are not 0.
func (b *Stored) give(ctx context.Context, mine []byte, all [][]byte) *Error {
	if e := b.set(ctx, b.key(b.rank), storedOne, mine); e != nil {
		return quit(ctx, b, e)
	}
	outstayed, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	// Rank 0's verdict names the rank that is missing: see grace.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()
	kind, data, e := b.get(outstayed, b.key("all"), 0)
	switch {
	case e != nil:
		if err := ctx.Err(); err != nil && (e.Code == Canceled || e.Code == Timeout) {
			return b.failed(ctx, "get", b.key("all"), err).by(0)
		}
		return quit(ctx, b, e)
	case kind == storedFailed:
		if e := saidBy(data); e != nil {
			return e
		}
	case kind != storedAll || !unpack(data, all):
	case bytes.Equal(all[b.rank], mine):
		return nil
	default:
		return quit(ctx, b, fault(System, "the store's value of %s is of another job: each has a prefix of its own",
			b.key("all")))
	}
	return fault(System, "the store's value of %s is not what rank 0 has set", b.key("all"))
}

// quit tells rank 0 that this rank takes no part any more, and why: in this round, and in the next, where rank 0 looks
// if it has what this rank has set before.
func quit(ctx context.Context, b *Stored, e *Error) *Error {
	for range 2 {
		b.tell(ctx, b.rank, e)
		b.round++
	}
	return e
}

// saidBy is what tell has set, nil if data is something else.
func saidBy(data []byte) *Error {
	v, err := parseVerdict(data)
	if err != nil || v.Code == 0 {
		return nil
	}
	return v.error()
}

// collect is AllGather on rank 0.
func (b *Stored) collect(ctx context.Context, all [][]byte) *Error {
	if b.size == 1 {
		return nil
	}
	for r := 1; r < b.size; r++ {
		kind, data, e := b.get(ctx, b.key(r), r)
		if e == nil && kind == storedFailed {
			e = saidBy(data)
		}
		if e == nil && kind != storedOne {
			e = fault(System, "the store's value of %s is not what rank %d has set", b.key(r), r)
		}
		if e != nil {
			e = e.by(r)
			b.tell(ctx, "all", e)
			return e
		}
		all[r] = data
	}
	e := b.set(ctx, b.key("all"), storedAll, pack(all))
	if e != nil {
		b.tell(ctx, "all", e)
	}
	return e
}

// tell gives the other ranks e in the place of a value, that of this rank or all.
func (b *Stored) tell(ctx context.Context, who any, e *Error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	text, _ := json.Marshal(verdict{Code: e.Code, Peer: e.Peer, Missing: e.Missing,
		Text: fmt.Sprintf("rank %d: %s", b.rank, plain.Text(e.Text))})
	b.set(ctx, b.key(who), storedFailed, text) // where this fails, each finds out by itself
}

// set asks the store to.
func (b *Stored) set(ctx context.Context, key string, kind byte, value []byte) *Error {
	_, err := ask(ctx, func() ([]byte, error) { return nil, b.s.Set(ctx, key, append([]byte{kind}, value...)) })
	return b.failed(ctx, "set", key, err)
}

// get asks the store for what rank has set.
func (b *Stored) get(ctx context.Context, key string, rank int) (kind byte, data []byte, e *Error) {
	value, err := ask(ctx, func() ([]byte, error) { return b.s.Get(ctx, key) })
	switch {
	case err != nil:
		e = b.failed(ctx, "get", key, err).by(rank)
		if e.Code == Timeout {
			e.Missing = []int{rank}
		}
	case len(value) == 0:
		e = fault(System, "the store has an empty value of %s, which nobody has set", key).by(rank)
	default:
		return value[0], value[1:], nil
	}
	return 0, nil, e
}

// ask calls a method of the store, and returns when ctx ends, whatever the store does.
func ask(ctx context.Context, method func() ([]byte, error)) (value []byte, err error) {
	done := make(chan struct{})
	var v []byte
	var e error
	go func() {
		defer close(done)
		v, e = method()
	}()
	select {
	case <-done:
		return v, e
	case <-ctx.Done():
	}
	select {
	case <-done: // as well
		return v, e
	default:
		return nil, ctx.Err()
	}
}

// failed is err, nil where that is nil.
func (b *Stored) failed(ctx context.Context, what, key string, err error) *Error {
	if err == nil {
		return nil
	}
	code, inner := System, (*Error)(nil)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		code = Timeout
	case errors.Is(err, context.Canceled):
		code = Canceled
	case errors.As(err, &inner):
		code = inner.Code
	case ctx.Err() != nil: // which the store says in its own words
		code = ended(ctx.Err(), "").Code
	}
	return fault(code, "the store cannot %s %s: %v", what, key, err)
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
