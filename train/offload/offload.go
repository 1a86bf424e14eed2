// Package offload keeps on a local disk what package zero would hold in memory (ZeRO-Infinity,
// Rajbhandari et al. 2021): optimizer state and master copies at every stage, and at stage 3
// parameters and gradients as well. It is for the CPU engine.
//
//	d, err := offload.New(ctx, c, "/scratch", &offload.Options{States: 2}) // AdamW has two
//	defer d.Close()
//	m, err := zero.New[float32, float32](ctx, c, units, &zero.Options{Stage: 3, Disk: d})
//	defer m.Close() // before d
//	...
//	err = m.Step(ctx, func(p zero.Piece, w, g []float32) error {
//		return optim.Apply(adam, n, w, g, offload.State[float32](d, 0), offload.State[float32](d, 1))
//	})
//
// Each rank has a file of its own. On Linux and other Unix systems the file has no name from New
// on, so a rank that is killed leaves nothing; on Windows Close removes the file, and a kill leaves it.
// The room is reserved when the model is made: a full disk is an error then, on all ranks.
//
// Reads and writes go past the page cache (O_DIRECT) where the system has that. Elsewhere, and with
// Options.Buffered, they go through the cache, and Linux is told to drop each range once it is read
// or written. All of them run in the order in which they were issued, beside the computation: an
// update has the bucket before written and the bucket behind read meanwhile. The arithmetic is that
// of a model in memory, and so are the bits.
//
// The first error of the disk names the file and ends the Comm of the model, so all ranks have it.
// Every later call of that rank returns that error. A disk that answers nothing is waited for, as
// long as the context of the call allows. What has none waits for half a minute in which nothing is
// finished: Close of the model and of the Disk, and a checkpoint that reads or writes a Column. Then
// there is an error, and memory and file are left to the disk.
package offload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
)

// Options of a Disk must agree on all ranks, but for Buffered.
type Options struct {
	// States is how many elements the optimizer keeps for each parameter, in the type of the masters:
	// 2 for AdamW, 0 for SGD without momentum.
	States int
	// Bucket is how many parameters are read, updated and written in one go; default 524,288. Of each
	// array, as that of a moment, two buckets are in memory. It is rounded up to a multiple of 4,096.
	Bucket int
	// Buffered goes through the page cache, even where the system can go past it.
	Buffered bool
}

// mostBucket is more than a bucket needs: it has no more memory than the longest array.
const mostBucket = 1 << 30

// Disk is a file on a local disk, for one model. Its methods but Close and Stats are what package
// zero needs of it.
type Disk struct {
	o     Options
	laid  laid
	taken bool
	now   []ccl.Buf // the states of the piece that is updated
	rooms map[room]ccl.Buf

	queue
}

// laid is the bytes of all arrays that were laid out, and the elements of the longest.
type laid struct {
	size int64
	most int
}

// New makes the file of this rank in dir, a directory of a local disk. It is collective: an error is
// that of all ranks.
func New(ctx context.Context, c *ccl.Comm, dir string, o *Options) (*Disk, error) {
	if c == nil {
		return nil, errors.New("offload: the Comm is nil")
	}
	d := &Disk{rooms: map[room]ccl.Buf{}}
	if o != nil {
		d.o = *o
	}
	d.o.Bucket = cmp.Or(d.o.Bucket, 1<<19)
	var err error
	if d.o.States < 0 || d.o.Bucket < 0 {
		err = fmt.Errorf("%d states, buckets of %d; neither may be negative", d.o.States, d.o.Bucket)
	} else {
		d.f, err = open(dir, c.Rank(), !d.o.Buffered)
	}
	d.o.Bucket = int(blocks(int64(min(d.o.Bucket, mostBucket))))
	items := []string{fmt.Sprintf("States %d", d.o.States), fmt.Sprintf("Bucket %d", d.o.Bucket)}
	if err = same.Args(ctx, c, "offload", err, items...); err != nil {
		if d.f != nil {
			err = errors.Join(err, d.f.Close())
		}
		return nil, err
	}
	d.start()
	return d, nil
}

// Take gives the Disk to a model, which there may be one of; failed hears of the first error of the disk. Nil takes the
// Disk back from a model that was not made, and what that has laid out.
func (d *Disk) Take(failed func(error)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.f == nil:
		return errors.New("the Disk is not one that offload.New has made")
	case failed != nil && (d.taken || d.end.closed):
		return errors.New("the Disk has a model, or is closed: make another one")
	}
	d.taken, d.failed, d.laid = failed != nil, failed, laid{}
	return nil
}

// Reserve has the disk keep room for all that was laid out. What was never written reads as zeros.
func (d *Disk) Reserve() error {
	if err := d.f.Reserve(d.laid.size); err != nil {
		return fmt.Errorf("room for %d bytes: %w", d.laid.size, named(err))
	}
	return nil
}

// States is that of Options.
func (d *Disk) States() int { return d.o.States }

// Show has State return these.
func (d *Disk) Show(states []ccl.Buf) { d.now = states }

// State returns state k of the parameters that an Update of zero has to update: a slice as long as
// its w. It is valid until the Update returns, and what the Update leaves there is there in the next
// step. There is none outside of an Update: then it returns nil, as for a k or a type that is not there.
func State[M ccl.Element](d *Disk, k int) []M {
	if d == nil || k < 0 || k >= len(d.now) {
		return nil
	}
	s, _ := ccl.SliceOf[M](d.now[k])
	return s
}

// Stats are of all that was done so far. Busy is how long the disk read or wrote, and Waited how
// long that was waited for by the model's calls.
type Stats struct {
	Size          int64 // of the file, in bytes
	Read, Written int64 // bytes
	Busy, Waited  time.Duration
	Direct        bool // past the page cache
}

// Stats of this rank's file.
func (d *Disk) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Size, s.Direct = d.laid.size, d.f != nil && d.f.Direct()
	return s
}

// Close waits for what is under way, and gives the room on the disk back. Close the model first.
func (d *Disk) Close() error {
	if d == nil || d.f == nil {
		return nil
	}
	switch first, answered := d.stop(); {
	case !answered:
		if first {
			go func() { <-d.end.ended; d.f.Close() }()
		}
		return d.Err()
	case first:
		if err := d.f.Close(); err != nil {
			return fmt.Errorf("offload: %w", err)
		}
	}
	return nil
}
