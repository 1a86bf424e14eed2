// Package ckpt saves the state of a job in parts, a file per rank, and loads it into any other layout: other numbers of
// ranks, other ZeRO stages, other tensor and pipeline splits. A file is in safetensors format. What several ranks hold
// alike is written once. A Saver does it while training goes on; Latest finds the last whole one, and Keep removes old ones.
// Export writes whole tensors for other programs, and Load reads theirs.
//
// All ranks see one directory: on several hosts it is on a file system that they share. Save and Load are collective and
// open no connections. Rank 0 plans in memory of O(pieces). Load holds the index, one block of 4 MiB, and a list of the
// runs of elements that it copies: one for each row of a piece that is split by columns.
package ckpt

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
)

// Save writes what all ranks of c hold into dir, which must not be there yet. It returns when everything is on disk
// under that name, or with an error on every rank. state, of rank 0, is kept as JSON. It writes to dir.tmp, syncs, and
// renames, so under the name dir there is a whole checkpoint or none. An error after the renaming, in the sync of the
// directory above, is an error of Save's although the checkpoint is there. ts must not change meanwhile. A tensor with elements that
// no rank holds is an error, unless boxes that overlap hide it, and so are two on one rank that have the same elements of
// one name. What several ranks hold under one name must be alike: one of them writes it.
func Save(ctx context.Context, c *ccl.Comm, dir string, state any, ts []Tensor) error {
	return save(ctx, c, &disk{}, dir, state, ts)
}

func save(ctx context.Context, c *ccl.Comm, d *disk, dir string, state any, ts []Tensor) error {
	dir = filepath.Clean(dir)
	what, tmp := "ckpt: Save to "+dir, dir+tmpSuffix
	mine, data, err := describe(ts)
	if err == nil {
		err = once(mine)
	}
	if err := same.Args(ctx, c, what, err, "the directory "+dir); err != nil {
		return err
	}
	all, err := toRoot(ctx, c, mine)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	ix := &index{}
	if c.Rank() == 0 {
		if ix, err = plan(all, state); err == nil {
			err = d.begin(dir, tmp)
		}
	}
	if err := same.Args(ctx, c, what, err); err != nil {
		return err
	}
	planned, err := fromRoot(ctx, c, ix.Pieces)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	planned = slices.DeleteFunc(planned, func(p piece) bool { return p.File != c.Rank() })
	wrote, err := d.write(tmp, partName(c.Rank(), c.Size()), planned, mine, data)
	if err := same.Args(ctx, c, what, err); err != nil {
		if c.Rank() == 0 {
			d.discard(tmp)
		}
		return err
	}
	parts, err := toRoot(ctx, c, wrote)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if c.Rank() == 0 {
		ix.Pieces = nil
		for _, p := range parts {
			ix.Files, ix.Pieces = append(ix.Files, p.file), append(ix.Pieces, p.Pieces...)
		}
		if err = d.finish(dir, tmp, ix); err != nil {
			d.discard(tmp)
		}
	}
	return same.Args(ctx, c, what, err)
}

// once makes sure that no two pieces have the same elements of a box.
func once(mine []piece) error {
	seen := map[string][]*piece{}
	for i := range mine {
		p := &mine[i]
		for _, q := range seen[p.Name] {
			if q.Lo < p.Hi && p.Lo < q.Hi && slices.Equal(p.Offset, q.Offset) && slices.Equal(p.Size, q.Size) {
				return fmt.Errorf("tensor %q is there twice: elements %d to %d and %d to %d", p.Name, q.Lo, q.Hi, p.Lo, p.Hi)
			}
		}
		seen[p.Name] = append(seen[p.Name], p)
	}
	return nil
}

// plan says who writes what: each range, cut wherever a holder's begins or ends, by the holder with least to write. A
// tensor of which fewer elements are held than it has is an error; boxes that overlap count twice.
func plan(all [][]piece, state any) (*index, error) {
	ix := &index{Tensors: map[string]tensor{}}
	var err error
	if ix.State, err = json.Marshal(state); err != nil {
		return nil, fmt.Errorf("the state: %w", err)
	}
	held, keys := map[string][]piece{}, []string{}
	for r, ps := range all {
		for _, p := range ps {
			t, ok := ix.Tensors[p.Name]
			if ok && (t.Type != p.Type || !slices.Equal(t.Shape, p.Shape)) {
				return nil, fmt.Errorf("tensor %q is %s %v on rank %d, and %s %v on a rank before it", p.Name, p.Type, p.Shape, r, t.Type, t.Shape)
			}
			ix.Tensors[p.Name] = tensor{p.Type, p.Shape}
			k := fmt.Sprintf("%q %v %v", p.Name, p.Offset, p.Size)
			if held[k] == nil {
				keys = append(keys, k)
			}
			p.File = r
			held[k] = append(held[k], p)
		}
	}
	load, lacks := make([]int, len(all)), map[string]int{}
	for name, t := range ix.Tensors {
		lacks[name] = prod(t.Shape)
	}
	for _, k := range keys {
		var cuts []int
		for _, p := range held[k] {
			cuts = append(cuts, p.Lo, p.Hi)
		}
		slices.Sort(cuts)
		cuts = slices.Compact(cuts)
		for i := 1; i < len(cuts); i++ {
			best := -1
			for j, p := range held[k] {
				if p.Lo <= cuts[i-1] && cuts[i] <= p.Hi && (best < 0 || load[p.File] < load[held[k][best].File]) {
					best = j
				}
			}
			if best < 0 {
				continue
			}
			p := held[k][best]
			p.Lo, p.Hi = cuts[i-1], cuts[i]
			load[p.File] += (p.Hi - p.Lo) * dtypes[p.Type]
			lacks[p.Name] -= p.Hi - p.Lo
			ix.Pieces = append(ix.Pieces, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lacks)) {
		if n := lacks[name]; n > 0 {
			return nil, fmt.Errorf("tensor %q: no rank holds %d of its %d elements", name, n, prod(ix.Tensors[name].Shape))
		}
	}
	return ix, nil
}
