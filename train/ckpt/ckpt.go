// Package ckpt saves the state of a job in parts, a file per rank, and loads it into any other layout: other numbers of
// ranks, other ZeRO stages, other tensor and pipeline splits. A file is in safetensors format. What several ranks hold
// alike is written once. A Saver does it while training goes on; Latest finds the last whole one, and Keep removes old ones.
//
// All ranks see one directory: on several hosts it is on a file system that they share. Save and Load are collective and
// open no connections. Rank 0 plans in memory of O(pieces). Load holds the index, one block of 4
// MiB, and a list of the runs of elements that it copies: one for each row of a piece that is split by columns.
package ckpt

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sort"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
)

// Tensor is what one rank holds of a named tensor.
type Tensor struct {
	Name         string
	Shape        []int // of the whole tensor
	Offset, Size []int // the box of it that this rank works on, as tp splits it; nil: all of it
	Lo, Hi       int   // the elements of the box, row-major, that are here, as zero splits them; 0, 0 and Data: all
	Data         any   // []T of one of the types that ccl names, such as []float32 or []ccl.BFloat16
}

// Save writes what all ranks of c hold into dir, which must not be there yet. It returns when everything is on disk
// under that name, or with an error on every rank. state, of rank 0, is kept as JSON. It writes to dir.tmp, syncs, and
// renames, so under the name dir there is a whole checkpoint or none. An error after the renaming, in the sync of the
// directory above, is an error of Save's although the checkpoint is there. ts must not change meanwhile.
func Save(ctx context.Context, c *ccl.Comm, dir string, state any, ts []Tensor) error {
	return save(ctx, c, &disk{}, dir, state, ts)
}

func save(ctx context.Context, c *ccl.Comm, d *disk, dir string, state any, ts []Tensor) error {
	dir = filepath.Clean(dir)
	what := "ckpt: Save to " + dir
	mine, err := describeAll(ts)
	if err := same.Args(ctx, c, what, err, "the directory "+dir); err != nil {
		return err
	}
	text, err := json.Marshal(mine)
	if err := same.Args(ctx, c, what, err); err != nil {
		return err
	}
	all, err := gather(ctx, c, text)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	tmp := dir + tmpSuffix
	ix := index{}
	if c.Rank() == 0 {
		if ix, err = plan(all, state); err == nil {
			err = d.begin(dir, tmp)
		}
		if err == nil {
			text, err = json.Marshal(ix.Pieces)
		}
	}
	if err := same.Args(ctx, c, what, err); err != nil {
		return err
	}
	if text, err = broadcast(ctx, c, text); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var planned []piece
	wrote := part{}
	if err = json.Unmarshal(text, &planned); err == nil {
		planned = slices.DeleteFunc(planned, func(p piece) bool { return p.File != c.Rank() })
		wrote, err = d.write(tmp, partName(c.Rank(), c.Size()), planned, mine, ts)
	}
	if err == nil {
		text, err = json.Marshal(wrote)
	}
	if err := same.Args(ctx, c, what, err); err != nil {
		if c.Rank() == 0 {
			d.discard(tmp)
		}
		return err
	}
	if all, err = gather(ctx, c, text); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if c.Rank() == 0 {
		if err = ix.add(all); err == nil {
			err = d.finish(dir, tmp, &ix)
		}
		if err != nil {
			d.discard(tmp)
		}
	}
	return same.Args(ctx, c, what, err)
}

// plan says who writes what: each range, cut wherever a holder's begins or ends, by the holder with least to write.
func plan(all [][]byte, state any) (index, error) {
	ix := index{Tensors: map[string]tensor{}}
	var err error
	if ix.State, err = json.Marshal(state); err != nil {
		return ix, fmt.Errorf("the state: %w", err)
	}
	held, keys := map[string][]piece{}, []string{}
	for r, text := range all {
		var ps []piece
		if err := json.Unmarshal(text, &ps); err != nil {
			return ix, fmt.Errorf("what rank %d holds: %w", r, err)
		}
		for _, p := range ps {
			t, ok := ix.Tensors[p.Name]
			if ok && (t.Type != p.Type || !slices.Equal(t.Shape, p.Shape)) {
				return ix, fmt.Errorf("tensor %q is %s %v on rank %d, and %s %v on a rank before it", p.Name, p.Type, p.Shape, r, t.Type, t.Shape)
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
	load := make([]int, len(all))
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
			ix.Pieces = append(ix.Pieces, p)
		}
	}
	return ix, nil
}

// Load fills the Data of ts from dir, whatever the layout it was saved in, and state, if not nil, as json.Unmarshal
// does. It verifies the checksums of the blocks that it reads. A tensor that is missing, or of another shape or type,
// or damaged, is an error that names it and its file, on every rank; ts are then undefined.
func Load(ctx context.Context, c *ccl.Comm, dir string, state any, ts []Tensor) error {
	dir = filepath.Clean(dir)
	what := "ckpt: Load of " + dir
	want, err := describeAll(ts)
	if err := same.Args(ctx, c, what, err, "the directory "+dir); err != nil {
		return err
	}
	var text []byte
	if c.Rank() == 0 {
		if text, err = readIndex(dir); err == nil {
			_, err = parseIndex(text)
		}
	}
	if err := same.Args(ctx, c, what, err); err != nil {
		return err
	}
	if text, err = broadcast(ctx, c, text); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	ix, err := parseIndex(text)
	if err == nil {
		err = fill(dir, ix, want, ts)
	}
	if err == nil && state != nil {
		err = json.Unmarshal(ix.State, state)
	}
	return same.Args(ctx, c, what, err)
}

// fill reads what ts want.
func fill(dir string, ix *index, want []piece, ts []Tensor) error {
	byName := map[string][]piece{}
	for _, p := range ix.Pieces {
		byName[p.Name] = append(byName[p.Name], p)
	}
	reads := make([][]read, len(ix.Files))
	for i, w := range want {
		t, ok := ix.Tensors[w.Name]
		if !ok {
			return fmt.Errorf("%s has no tensor %q", filepath.Join(dir, indexName), w.Name)
		}
		if t.Type != w.Type || !slices.Equal(t.Shape, w.Shape) {
			return fmt.Errorf("tensor %q is %s %v in %s, and %s %v is wanted", w.Name, t.Type, t.Shape, filepath.Join(dir, indexName), w.Type, w.Shape)
		}
		size, dst := dtypes[w.Type], bytesOf(ts[i].Data)
		var got []run
		for _, p := range byName[w.Name] {
			for _, r := range overlap(&w, &p) {
				got = append(got, r)
				reads[p.File] = append(reads[p.File], read{p.At + int64(r.src*size), dst[r.dst*size : (r.dst+r.n)*size], w.Name})
			}
		}
		sort.Slice(got, func(a, b int) bool { return got[a].dst < got[b].dst })
		end := 0
		for _, r := range got {
			if r.dst > end {
				break
			}
			end = max(end, r.dst+r.n)
		}
		if end < w.Hi-w.Lo {
			return fmt.Errorf("%s lacks element %d of the part of tensor %q that is wanted", filepath.Join(dir, indexName), w.Lo+end, w.Name)
		}
	}
	for f, rs := range reads {
		if err := readPart(dir, &ix.Files[f], rs); err != nil {
			return err
		}
	}
	return nil
}

// gather collects a text of any length from each rank, at rank 0.
func gather(ctx context.Context, c *ccl.Comm, mine []byte) ([][]byte, error) {
	counts := make([]int, c.Size())
	if err := ccl.AllGather(ctx, c, counts, []int{len(mine)}); err != nil {
		return nil, err
	}
	var all []byte
	if c.Rank() == 0 {
		n := 0
		for _, k := range counts {
			n += k
		}
		all = make([]byte, n)
	}
	if err := ccl.GatherV(ctx, c, all, counts, mine, 0); err != nil || c.Rank() != 0 {
		return nil, err
	}
	var out [][]byte
	for _, k := range counts {
		out = append(out, all[:k])
		all = all[k:]
	}
	return out, nil
}

// broadcast gives rank 0's text to all.
func broadcast(ctx context.Context, c *ccl.Comm, text []byte) ([]byte, error) {
	n := []int{len(text)}
	if err := ccl.Broadcast(ctx, c, n, 0); err != nil {
		return nil, err
	}
	if c.Rank() != 0 {
		text = make([]byte, n[0])
	}
	return text, ccl.Broadcast(ctx, c, text, 0)
}
