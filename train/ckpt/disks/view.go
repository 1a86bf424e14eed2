package disks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/goccl/goccl/train/ckpt/internal/fetch"
	"github.com/goccl/goccl/train/ckpt/internal/indexes"
	"github.com/goccl/goccl/train/ckpt/internal/slots"
	"github.com/goccl/goccl/train/ckpt/store"
)

// held is an object on a disk.
type held struct {
	Name string
	Size int64
	// Sum and Good are an index's: its checksum, and whether it says the same.
	Sum  uint32
	Good bool
	// Fresh says that it was put where nothing was.
	Fresh bool
	// Left says that a killed Put has left something of the object, which List does not show.
	Left bool
}

// object is one that some disks have.
type object struct {
	held
	from []int // the ranks whose disks have it
}

// journal is what rank 0 has done in its view, for the other ranks to do to their disks.
type journal struct {
	Puts        []held // of indexes; one that is not Fresh decides its slot, whatever was there
	Gone, Swept []string
	// Tried is whether an index was put, with or without success: the checkpoint may be there.
	Tried bool
}

// view is the disks of all ranks as the Store of a Shelf, for one call: it has what any of them has.
// Rank 0, which alone lists, deletes and puts indexes, puts these on its own disk at once, and notes
// for all what is to be put and deleted. Each rank puts its parts on its own disk.
type view struct {
	d     *Disks
	names []string        // of all, in order: the same on all ranks
	left  []string        // the objects that are Left
	mine  map[string]bool // what this rank's own disk has
	from  *fetch.Session  // while ranks read each other's disks

	mu    sync.Mutex // guards what follows
	all   map[string]object
	sums  map[string][]uint32 // of the blocks of parts, by name
	done  journal
	parts []held // that this rank has put
}

// unite makes the view of what the disks hold, by rank.
func (d *Disks) unite(all [][]held) *view {
	v := &view{d: d, all: map[string]object{}, sums: map[string][]uint32{}}
	for r, list := range all {
		for _, h := range list {
			if h.Left {
				v.left = append(v.left, h.Name)
				continue
			}
			o, ok := v.all[h.Name]
			switch {
			case !ok || h.Size > o.Size: // a disk that has lost the end of a part does not have it
				o = object{h, []int{r}}
			case h.Size == o.Size:
				o.from = append(o.from, r)
			}
			v.all[h.Name] = o
		}
	}
	v.names = sorted(v.all)
	return v
}

// serve runs work, in which this rank may read what other disks have of v. It is collective, and
// work waits for no rank, unless it has called Ended before.
func (v *view) serve(ctx context.Context, work func() error) error {
	return fetch.Serve(ctx, v.d.c, v.d.local, v.names, func(x *fetch.Session) error {
		v.from = x
		defer func() { v.from = nil }()
		return work()
	})
}

// Ended is Ender's.
func (v *view) Ended() {
	if v.from != nil {
		v.from.End()
	}
}

// Put is Store's.
func (v *view) Put(ctx context.Context, name string, size int64, fresh bool, write func(io.Writer) error) error {
	_, part, ok := slots.Named(name)
	index := ok && !part
	v.mu.Lock()
	v.done.Tried = v.done.Tried || index && !slots.Empty(size)
	v.mu.Unlock()
	if err := v.d.local.Put(ctx, name, size, fresh, write); err != nil {
		return v.d.onDisk(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	h := held{Name: name, Size: size, Fresh: fresh}
	v.all[name] = object{h, []int{v.d.c.Rank()}}
	if index {
		v.done.Puts = append(slices.DeleteFunc(v.done.Puts, func(p held) bool { return p.Name == name }), h)
	} else {
		v.parts = append(v.parts, h)
	}
	return nil
}

// Open is Store's. All disks have the same indexes, so one is read here. A part may be elsewhere.
func (v *view) Open(ctx context.Context, name string) (store.Object, error) {
	if _, part, _ := slots.Named(name); !part {
		o, err := v.d.local.Open(ctx, name)
		if err != nil {
			return nil, v.d.onDisk(err)
		}
		own := object{held{Name: name, Size: o.Size()}, []int{v.d.c.Rank()}}
		return v.open(ctx, own), o.Close()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	o, ok := v.all[name]
	switch {
	case ok:
		return v.open(ctx, o), nil
	case v.from == nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return nil, fmt.Errorf("%s is on no disk of the job: %s wrote it", name, slots.Writer(name))
}

// List is Store's.
func (v *view) List(_ context.Context, prefix string) (list []store.Entry, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range sorted(v.all) {
		if strings.HasPrefix(name, prefix) {
			list = append(list, store.Entry{Name: name, Size: v.all[name].Size})
		}
	}
	return list, nil
}

// Delete is Store's. It is done once the empty indexes are on all disks: until then another job may
// have put an index there, which counts.
func (v *view) Delete(_ context.Context, name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.all, name)
	v.done.Gone = append(v.done.Gone, name)
	return nil
}

// Sweep is Sweeper's.
func (v *view) Sweep(_ context.Context, prefix string, gone func(name string) bool) error {
	for _, name := range v.left {
		if strings.HasPrefix(name, prefix) && gone(name) {
			v.mu.Lock()
			v.done.Swept = append(v.done.Swept, name)
			v.mu.Unlock()
		}
	}
	return nil
}

// copies is an object that is read from whichever disk has it whole.
type copies struct {
	of   object
	ctx  context.Context
	v    *view
	disk fetch.Reader // this rank's own
	sums []uint32     // of the blocks, if they are known
}

func (v *view) open(ctx context.Context, o object) *copies {
	return &copies{o, ctx, v, fetch.Reader{Store: v.d.local, Rank: v.d.c.Rank()}, v.sums[o.Name]}
}

// Size is Object's.
func (o *copies) Size() int64 { return o.of.Size }

// Close is Object's.
func (o *copies) Close() error { o.disk.Close(); return nil }

// ReadAt is Object's. The own disk comes first, and after it those of the ranks that follow.
func (o *copies) ReadAt(b []byte, at int64) (int, error) {
	var end error
	if left := max(0, o.Size()-at); int64(len(b)) > left {
		b, end = b[:left], io.EOF
	}
	me, size := o.disk.Rank, o.v.d.c.Size()
	from := slices.Clone(o.of.from)
	slices.SortFunc(from, func(x, y int) int { return (x-me+size)%size - (y-me+size)%size })
	var bad []error
	for _, holder := range from {
		err := o.readFrom(holder, b, at)
		if err == nil && !indexes.Damaged(o.sums, o.Size(), b, at) {
			return len(b), end
		}
		if err == nil {
			err = fetch.OnDisk(holder, fmt.Errorf("%s is damaged between bytes %d and %d", o.of.Name, at, at+int64(len(b))))
		}
		bad = append(bad, err)
	}
	return 0, errors.Join(bad...)
}

func (o *copies) readFrom(holder int, b []byte, at int64) error {
	if holder == o.disk.Rank {
		return o.disk.Read(o.ctx, o.of.Name, b, at)
	}
	if o.v.from == nil { // what lists and removes reads no part
		return fmt.Errorf("read %s: %w", o.of.Name, errors.ErrUnsupported)
	}
	return o.v.from.Read(o.ctx, holder, o.of.Name, b, at)
}
