package offload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/goccl/goccl/train/internal/same"
)

const (
	// block is what direct reads and writes are multiples of, in memory and on the disk.
	block = 4096
	// span is how much one of the lanes of an operation reads or writes at once.
	span = 512 << 10
	// lanes is how many of them a disk is given at a time: one alone leaves a fast disk idle in between.
	lanes = 4
)

// blocks rounds n up to whole blocks.
func blocks(n int64) int64 { return (n + block - 1) &^ (block - 1) }

// Op is a read or a write under way. Its memory is the disk's until Wait has returned nil or an error of
// the disk.
type Op struct {
	b       []byte
	at, end int64 // end: of the column, behind which the block's rest is nobody's
	write   bool
	done    chan struct{}
	err     error
}

// queue does operations one after the other, in the order in which they are issued. So what was
// written is read, and memory that is written may be read into by an operation behind that.
type queue struct {
	mu     sync.Mutex
	more   sync.Cond
	f      file
	ops    []*Op
	err    error       // the first
	failed func(error) // hears of it before anybody else
	stats  Stats
	end    end
	bounce [lanes][]byte
}

// end is how a queue ends.
type end struct {
	closed bool
	gone   bool          // a close has given the disk up
	dead   chan struct{} // closed when it is gone
	ended  chan struct{} // closed when all that was issued is done
	parts  atomic.Int64  // of operations that were done
}

func (q *queue) start() {
	q.more.L, q.end.ended, q.end.dead = &q.mu, make(chan struct{}), make(chan struct{})
	go q.run()
}

// stop ends q after the operations that were issued, and reports whether it was the first to do so, and
// whether the disk has answered.
func (q *queue) stop() (first, answered bool) {
	q.mu.Lock()
	first = !q.end.closed
	q.end.closed = true
	q.more.Signal()
	q.mu.Unlock()
	defer q.watch()()
	select {
	case <-q.end.ended:
		return first, true
	case <-q.end.dead:
		return first, false
	}
}

var errClosed = errors.New("offload: the Disk is closed, and its model is not")

// watch bounds all waits until stop is called: a disk that finishes no part of what is under way for half a
// minute has failed, and no operation is waited for any more. The memory of those stays the disk's.
func (q *queue) watch() (stop func()) {
	over, tick, before := make(chan struct{}), same.Tick, q.end.parts.Load()
	go func() {
		_, ended := same.Ends(tick, over, func() bool {
			q.mu.Lock()
			defer q.mu.Unlock()
			last := before
			before = q.end.parts.Load()
			return len(q.ops) == 0 || before != last
		})
		if ended {
			return
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.fail(fmt.Errorf("offload: %w", same.NoAnswer(tick, q.f.Name())))
		if !q.end.gone {
			q.end.gone = true
			close(q.end.dead)
		}
	}()
	return func() { close(over) }
}

// Closing says that the model is being closed, which waits for the disk as Close does. The model calls end
// before it gives its memory back, and does not if that is an error: the disk may still use the memory.
func (q *queue) Closing() (end func() error) {
	over := q.watch()
	return func() error {
		over()
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.failed = nil; q.end.gone {
			return q.err
		}
		return nil
	}
}

// fail tells failed of an error before an operation has it, so that no call of the Comm passes on what was not
// read. q.mu is held.
func (q *queue) fail(err error) {
	if failed := q.failed; failed != nil {
		q.mu.Unlock()
		failed(err)
		q.mu.Lock()
	}
	q.err = cmp.Or(q.err, err)
}

// issue adds an operation.
func (q *queue) issue(op *Op) *Op {
	op.done = make(chan struct{})
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.end.closed && q.err == nil {
		q.fail(errClosed)
	}
	if op.err = q.err; op.err != nil || len(op.b) == 0 {
		close(op.done)
		return op
	}
	q.ops = append(q.ops, op)
	q.more.Signal()
	return op
}

// wait waits for op, and counts how long.
func (q *queue) wait(ctx context.Context, op *Op) error {
	select {
	case <-op.done:
		return op.err
	default:
	}
	began := time.Now()
	defer func() {
		q.mu.Lock()
		q.stats.Waited += time.Since(began)
		q.mu.Unlock()
	}()
	select {
	case <-op.done:
		return op.err
	case <-q.end.dead:
		return q.Err()
	case <-ctx.Done():
		return fmt.Errorf("offload: waiting for %s: %w", q.f.Name(), context.Cause(ctx))
	}
}

// Flush waits for all operations that were issued, and returns the first error of the disk.
func (q *queue) Flush(ctx context.Context) error {
	q.mu.Lock()
	op := (*Op)(nil)
	if n := len(q.ops); n > 0 {
		op = q.ops[n-1]
	}
	q.mu.Unlock()
	if op != nil {
		if err := q.wait(ctx, op); err != nil {
			return err
		}
	}
	return q.Err()
}

// Err is the first error of the disk.
func (q *queue) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

func (q *queue) run() {
	defer close(q.end.ended)
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(q.ops) == 0 && !q.end.closed {
			q.more.Wait()
		}
		if len(q.ops) == 0 {
			return
		}
		op, err := q.ops[0], q.err // after an error nothing is done: what follows may need what was lost
		q.mu.Unlock()
		began, first := time.Now(), err == nil
		if first {
			if err = q.do(op); err != nil {
				err = named(err)
			}
		}
		busy := time.Since(began)
		q.mu.Lock()
		if op.err = err; first && err != nil {
			q.fail(err)
		}
		if q.stats.Busy += busy; err == nil && op.write {
			q.stats.Written += int64(len(op.b))
		} else if err == nil {
			q.stats.Read += int64(len(op.b))
		}
		q.ops[0], q.ops = nil, q.ops[1:] // Flush has waited for it until now
		close(op.done)
	}
}

// named is an error of the disk, the cause first: what other ranks hear of it may be cut off at its end.
func named(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("offload: %w: %s %s", at.Err, at.Op, at.Path)
	}
	return fmt.Errorf("offload: %w", err)
}

// do does op in several lanes.
func (q *queue) do(op *Op) error {
	first, end := op.at/span, op.at+int64(len(op.b))
	n := int((end+span-1)/span - first)
	if n == 1 {
		return q.part(op, op.at, end, 0)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	var errs [lanes]error
	for l := range min(n, lanes) {
		all.Go(func() {
			for errs[l] == nil {
				k := first + next.Add(1) - 1
				lo, hi := max(op.at, k*span), min(end, (k+1)*span)
				if lo >= hi {
					return
				}
				errs[l] = q.part(op, lo, hi, l)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err // one says enough, and names the file
		}
	}
	return nil
}

// part does what op has from byte lo to hi of the file, within one span.
func (q *queue) part(op *Op, lo, hi int64, lane int) (err error) {
	b := op.b[lo-op.at : hi-op.at]
	defer func() {
		if err == nil {
			err = q.f.Drop(lo, hi-lo)
		}
		q.end.parts.Add(1)
	}()
	whole := (lo|hi)%block == 0 && uintptr(unsafe.Pointer(unsafe.SliceData(b)))%block == 0
	if whole || !q.f.Direct() {
		if op.write {
			_, err = q.f.WriteAt(b, lo)
		} else {
			_, err = q.f.ReadAt(b, lo)
		}
		return err
	}
	from, to := lo&^(block-1), blocks(hi)
	if q.bounce[lane] == nil {
		q.bounce[lane] = aligned(span)
	}
	tmp := q.bounce[lane][:to-from]
	if !op.write {
		_, err = q.f.ReadAt(tmp, from)
		copy(b, tmp[lo-from:])
		return err
	}
	last := tmp[len(tmp)-block:]
	if from < lo { // the block has others' bytes
		if _, err = q.f.ReadAt(tmp[:block], from); err != nil {
			return err
		}
	}
	if hi < to && hi == op.end {
		clear(last[hi-(to-block):])
	} else if hi < to && !(from < lo && len(tmp) == block) {
		if _, err = q.f.ReadAt(last, to-block); err != nil {
			return err
		}
	}
	copy(tmp[lo-from:], b)
	_, err = q.f.WriteAt(tmp, from)
	return err
}

// aligned is memory of n bytes that begins with a block.
func aligned(n int) []byte {
	b := make([]byte, n+block)
	return b[(block-int(uintptr(unsafe.Pointer(&b[0]))%block))%block:][:n]
}
