package disks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt/internal/slots"
	"github.com/goccl/goccl/train/ckpt/store"
	"github.com/goccl/goccl/train/internal/same"
)

// follow does to all disks what rank 0 has noted in v, in a call of a Shelf that has returned err on
// all ranks. It is collective.
func (d *Disks) follow(ctx context.Context, what string, v *view, err error) error {
	v.mu.Lock()
	done, parts := v.done, v.parts
	v.mu.Unlock()
	ofShelf := err
	for i := range done.Puts { // so that a rank whose disk has one knows whether it is the same
		delete(d.known, done.Puts[i].Name)
		if h := &done.Puts[i]; err == nil && !slots.Empty(h.Size) {
			if err = d.onDisk(d.sum(ctx, h)); err == nil && slots.Empty(h.Size) {
				err = fmt.Errorf("another job has removed %s: %w", h.Name, fs.ErrExist)
			}
		}
	}
	done, failed := ccl.BroadcastValue(ctx, d.c, done, 0)
	if failed != nil {
		if err == nil {
			err = fmt.Errorf("%s: %w", what, failed)
		}
		return err
	}
	if agreed := same.Args(ctx, d.c, what, err); agreed != nil {
		if !done.Tried || errors.Is(agreed, fs.ErrExist) { // nothing can come of the parts
			d.drop(ctx, parts)
		}
		return cmp.Or(ofShelf, agreed)
	}
	if err = d.putAll(ctx, what, done.Puts, parts); err != nil {
		return err
	}
	for _, name := range done.Gone {
		if v.mine[name] {
			err = errors.Join(err, d.local.Delete(ctx, name))
		}
	}
	if s, is := d.local.(store.Sweeper); is {
		for _, left := range done.Swept {
			err = errors.Join(err, s.Sweep(ctx, left, func(name string) bool { return name == left }))
		}
	}
	if err := same.Args(ctx, d.c, what, d.onDisk(err)); err != nil {
		return err
	}
	return d.copy(ctx, what, parts)
}

// drop deletes objects. If that fails, a later Keep deletes them.
func (d *Disks) drop(ctx context.Context, list []held) {
	for _, h := range list {
		delete(d.known, h.Name)
		_ = d.local.Delete(ctx, h.Name)
	}
}

// putAll puts the indexes of rank 0 on the other disks: each rank that has them gives them to one
// more. If a disk has what another job has put into a slot that was free, this job has lost: what it
// has put into such slots is deleted, and the parts of this rank.
func (d *Disks) putAll(ctx context.Context, what string, puts, parts []held) error {
	if len(puts) == 0 {
		return nil
	}
	v := d.unite([][]held{puts})
	var mine []held
	if d.c.Rank() == 0 {
		mine = slices.DeleteFunc(slices.Clone(puts), func(h held) bool { return !h.Fresh })
	}
	for have := 1; have < d.c.Size(); have *= 2 { // so many ranks have them
		err := v.serve(ctx, func() error {
			from := d.c.Rank() - have
			if from < 0 || from >= have {
				return nil
			}
			for _, h := range puts {
				if err := v.pull(ctx, object{h, []int{from}}, h.Fresh); err != nil {
					return err
				}
				if h.Fresh {
					mine = append(mine, h)
				}
			}
			return nil
		})
		if err = same.Args(ctx, d.c, what, err); err != nil {
			if errors.Is(err, fs.ErrExist) {
				d.drop(ctx, append(mine, parts...))
			}
			return err
		}
	}
	return nil
}

// copy puts the parts of this rank on the disks of other hosts, and theirs on this one.
func (d *Disks) copy(ctx context.Context, what string, parts []held) error {
	if d.copies < 2 {
		return nil
	}
	all, err := ccl.AllGatherValues(ctx, d.c, parts)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	v := d.unite(all)
	err = v.serve(ctx, func() error {
		for r, list := range all {
			for away := 1; away < d.copies; away++ {
				if d.holder(r, away) != d.c.Rank() {
					continue
				}
				for _, h := range list {
					if err := v.pull(ctx, v.all[h.Name], false); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	return same.Args(ctx, d.c, what, err)
}

// holder is the rank that copies the parts of a rank to a host so many hosts away.
func (d *Disks) holder(rank, away int) int {
	p := d.places[rank]
	node := (p.Node + away) % p.Nodes
	var there []int
	for r, q := range d.places {
		if q.Node == node {
			there = append(there, r)
		}
	}
	return there[p.Local%len(there)]
}
