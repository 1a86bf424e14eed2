// Package disks has checkpoints in parts on the local disks of several hosts, where the ranks share
// no directory: each rank writes its part to its own disk, and a Load reads from the disks of other
// ranks what its own lacks, over a Comm. The layout may be another one than that of the Save: other
// numbers of ranks, on other hosts.
//
//	d, err := disks.New(ctx, c, store.Dir("/local/run"), nil)
//	err = d.Save(ctx, ckpt.Step("", step), state, tensors)
//	latest, passed, err := d.Latest(ctx, "")
//	_, err = d.Load(ctx, latest, &state, tensors, ckpt.LoadOptions{})
//
// The objects on a disk are those of a ckpt.Shelf: parts, and indexes, which are small and on every
// disk. A checkpoint is whole if each of its parts is on the disk of a rank of this job. So a step of
// which a host has taken a part with it is passed over, and counts again once the host is back. With
// Options.Copies parts are on the disks of several hosts, and a step outlives a host.
//
// Each call begins with a meeting: the ranks tell each other what their disks have, and make the
// indexes alike. So disks that were away learn what was saved and removed meanwhile, and new ones
// get the indexes. Rank 0 decides by what all disks have, as a Shelf does in one Store, and puts
// indexes on its own disk first; the others follow in the same call. If the job is killed between the
// two, the next meeting brings the rest to an end: an empty index, which says that a checkpoint was
// removed, counts before another one of its name. Parts are deleted once all disks have the empty
// index. A job that is killed before its copies are made has a whole step without copies.
//
// Ranks may share a disk, by the same directory. Of two jobs that save to one name on disks of which
// one is in both, at most one has no error. Jobs without a disk in common must not save to the same
// names: when their disks meet, a step that one has removed is removed for both.
//
// A read of another disk is served in rounds, in which all ranks take part: a rank holds two blocks
// of 4 MiB besides what ckpt does, whatever the size of the parts.
package disks

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/ckpt/internal/fetch"
	"github.com/goccl/goccl/train/ckpt/store"
	"github.com/goccl/goccl/train/internal/same"
)

// Options are the same on all ranks.
type Options struct {
	// Copies is on the disks of how many hosts each part is. 0 means 1: on that of the rank that has
	// written it.
	Copies int
}

// Disks are the local disks of the ranks of a Comm. One goroutine at a time may use it.
type Disks struct {
	of     *ccl.Comm // the program's
	c      *ccl.Comm // its own: a Load uses both at once
	local  store.Store
	places []ccl.Place
	copies int
	cancel context.CancelFunc // ends what watches over of
	known  map[string]held    // indexes of the local disk that were read
}

// New makes Disks of each rank's local Store, such as a store.Dir of a local disk. It is collective,
// and makes a Comm of its own, which Close closes. nil Options are the defaults.
func New(ctx context.Context, c *ccl.Comm, local store.Store, o *Options) (*Disks, error) {
	if c == nil {
		return nil, errors.New("ckpt/disks: New: the Comm is nil")
	}
	if o == nil {
		o = &Options{}
	}
	d := &Disks{of: c, local: local, copies: max(o.Copies, 1), known: map[string]held{}}
	var bad error
	switch nodes := c.Place().Nodes; {
	case local == nil:
		bad = errors.New("there is no Store")
	case o.Copies < 0 || o.Copies > max(nodes, 1):
		bad = fmt.Errorf("%d copies on the disks of %d hosts", o.Copies, nodes)
	}
	err := same.Args(ctx, c, "ckpt/disks: New", bad, fmt.Sprintf("Copies %d", d.copies))
	if err != nil {
		return nil, err
	}
	if d.places, err = ccl.AllGatherValues(ctx, c, c.Place()); err != nil {
		return nil, fmt.Errorf("ckpt/disks: New: %w", err)
	}
	if d.c, err = c.SplitWith(ctx, 0, c.Rank(), func(o *ccl.Options) { o.Name = "disks" }); err != nil {
		return nil, fmt.Errorf("ckpt/disks: New: %w", err)
	}
	open, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	go func() {
		select {
		case <-c.Done():
			d.c.Abort(c.Err())
		case <-open.Done():
		}
	}()
	return d, nil
}

// Close closes the Comm of d.
func (d *Disks) Close() error {
	if failed := d.of.Err(); failed != nil { // the others' calls end for that reason, not because this rank leaves
		d.c.Abort(failed)
	}
	d.cancel()
	return d.c.Close()
}

// onDisk is err, of this rank's disk.
func (d *Disks) onDisk(err error) error { return fetch.OnDisk(d.c.Rank(), err) }

// clean is a name as ckpt has it in a Store.
func clean(name string) string { return path.Clean(filepath.ToSlash(name)) }

// steps is how the names of the steps in dir begin.
func steps(dir string) string { return path.Join(clean(dir), "step-") }

// around is how the names begin that a Save of name looks at.
func around(name string) string {
	if name = clean(name); strings.HasPrefix(path.Base(name), "step-") {
		return steps(path.Dir(name))
	}
	return name + "/"
}

// Save is Save of a ckpt.Shelf. When it returns without an error, the checkpoint is whole, and each
// disk has its index.
func (d *Disks) Save(ctx context.Context, name string, state any, ts []ckpt.Tensor) error {
	v, err := d.meet(ctx, "ckpt/disks: Save to "+name, around(name))
	if err != nil {
		return err
	}
	return d.follow(ctx, "ckpt/disks: Save to "+name, v, ckpt.Shelf{Store: v}.Save(ctx, d.of, name, state, ts))
}

// Load is Load of a ckpt.Shelf. A part that is on no disk, or damaged on all that have it, is an error
// if some rank reads it. Of other programs' files it loads those that each rank's own disk has.
func (d *Disks) Load(ctx context.Context, name string, state any, ts []ckpt.Tensor,
	o ckpt.LoadOptions) (r *ckpt.Report, err error) {
	v, err := d.meet(ctx, "ckpt/disks: Load of "+name, clean(name)+"/")
	if err != nil {
		return nil, err
	}
	v.learn(ctx, clean(name))
	err = v.serve(ctx, func() error {
		r, err = ckpt.Shelf{Store: v}.Load(ctx, d.of, name, state, ts, o)
		return err
	})
	return r, err
}

// Latest is Latest of a ckpt.Shelf: the whole checkpoint that was saved last, whose parts the disks
// of these ranks have.
func (d *Disks) Latest(ctx context.Context, dir string) (latest string, passed []error, err error) {
	v, err := d.meet(ctx, "ckpt/disks: Latest in "+dir, steps(dir))
	if err != nil {
		return "", nil, err
	}
	return ckpt.Shelf{Store: v}.Latest(ctx, d.of, dir)
}

// Keep is Keep of a ckpt.Shelf, on all disks. A disk that is away follows when it is back.
func (d *Disks) Keep(ctx context.Context, dir string, n int) error {
	what := fmt.Sprintf("ckpt/disks: Keep %d in %s", n, dir)
	v, err := d.meet(ctx, what, steps(dir))
	if err != nil {
		return err
	}
	return d.follow(ctx, what, v, ckpt.Shelf{Store: v}.Keep(ctx, d.of, dir, n))
}

// Forget is Forget of a ckpt.Shelf, on all disks.
func (d *Disks) Forget(ctx context.Context, dir string, step int) error {
	what := fmt.Sprintf("ckpt/disks: Forget what is after step %d in %s", step, dir)
	v, err := d.meet(ctx, what, steps(dir))
	if err != nil {
		return err
	}
	return d.follow(ctx, what, v, ckpt.Shelf{Store: v}.Forget(ctx, d.of, dir, step))
}
