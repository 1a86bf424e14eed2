// Package ckpt saves checkpoints of a job in parts, a file per rank, and loads them into any other
// layout, as PyTorch's distributed checkpoint (DCP): other numbers of ranks, other ZeRO stages,
// other tensor and pipeline splits. A file is in safetensors format. What several ranks hold alike
// is written once. A Saver does it while training goes on; Latest finds the last whole one, and
// Keep removes old ones. Export writes whole tensors for other programs, and Load reads theirs.
//
// All ranks see one directory: on several hosts it is on a file system that they share. Where there
// is none, a Shelf has checkpoints in an object store, and package disks has them on the disks of
// the hosts. Save and Load are collective and open no connections. Rank 0 plans in memory of
// O(pieces). Load holds the index, two blocks of 4 MiB, and a list of the runs of elements that it
// copies: one for each row of a piece that is split by columns. The name of a tensor is in memory
// once, beside the program's own: on rank 0 those that it does not have itself in Save, and on each
// rank those of the checkpoint in Load.
package ckpt

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt/internal/content"
	"github.com/goccl/goccl/train/internal/same"
)

// Save writes what all ranks of c hold into dir, which must not be there yet. It returns when
// everything is on disk under that name, or with an error on every rank: os.ErrExist if dir is
// there, and syscall.ENOSPC if the disk is full. state, of rank 0, is kept as JSON; a State has
// some of each rank, too. It writes to a directory with a name of its own beside dir, syncs, and
// renames, so under the name dir there is a whole checkpoint or none. What Step has named and is
// not whole gives way to it, and is kept as dir.damaged-RANDOM. Of two jobs that save to one dir at
// once, one gets an error. An error after the renaming, in the sync of the directory above, is an
// error of Save's although the checkpoint is there. ts must not change meanwhile. A tensor with
// elements that no rank holds is an error, and so are two on one rank that have the same elements
// of one name. Elements that several ranks hold under one name must be alike on all: one rank
// writes them.
func Save(ctx context.Context, c *ccl.Comm, dir string, state any, ts []Tensor) error {
	return save(ctx, c, &disk{ctx: ctx}, filepath.Clean(dir), state, ts)
}

// orders are what rank 0 tells a rank to write, and where.
type orders struct {
	Tmp   string `json:"tmp"`
	Tasks []task `json:"tasks"`
}

func save(ctx context.Context, c *ccl.Comm, d target, dir string, state any, ts []Tensor) (err error) {
	what, tmp := "ckpt: Save to "+dir, ""
	defer func() { // on rank 0, which has made it; once dir is there, tmp is not
		if err != nil && tmp != "" {
			d.discard(dir, tmp)
		}
	}()
	mine, data, err := describe(hosted(ts, nil, true))
	job, own, bad := split(state)
	if err := same.Args(ctx, c, what, cmp.Or(err, once(mine), bad), "the directory "+dir); err != nil {
		return err
	}
	limit := atOnce
	if d, is := d.(*disk); is {
		limit = cmp.Or(d.atOnce, limit)
	}
	held, bad, err := collect(ctx, c, mine, limit)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var ix *index
	all := make([]orders, c.Size())
	if err = bad; c.Rank() == 0 && bad == nil {
		ix, tmp, err = begin(d, dir, job, held, all)
	}
	if err := same.Args(ctx, c, what, err); err != nil {
		return err
	}
	text, err := toEach(ctx, c, all)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	my, err := decode[orders](text)
	wrote := part{}
	if err == nil {
		wrote, err = write(d, dir, my, partName(c.Rank(), c.Size()), mine, data, own)
		err = d.lost(my.Tmp, err)
	}
	if err := same.Args(ctx, c, what, err); err != nil {
		return err
	}
	parts, err := toRoot(ctx, c, wrote)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if c.Rank() == 0 {
		err = finish(d, dir, tmp, ix, parts)
	}
	return same.Args(ctx, c, what, err)
}

// begin plans, makes the directory that is written to, and gives the ranks their orders.
func begin(d target, dir string, state any, held [][]piece, all []orders) (ix *index, tmp string, err error) {
	ix, tasks, err := plan(held, state)
	if err != nil {
		return nil, "", err
	}
	if tmp, ix.Sequence, err = d.take(dir); err != nil {
		return nil, tmp, err
	}
	for r := range all {
		all[r] = orders{tmp, tasks[r]}
	}
	return ix, tmp, nil
}

// write writes a rank's part: what it is told to, of the pieces mine, whose memory is data, and
// own, the state of the rank.
func write(d target, dir string, o orders, name string, mine []piece, data []content.Content,
	own []byte) (part, error) {
	out := make([]content.Content, 0, len(o.Tasks)+1)
	for _, t := range o.Tasks {
		if t.Of < 0 || t.Of >= len(mine) || t.Lo < mine[t.Of].Lo || t.Hi > mine[t.Of].Hi || t.Hi < t.Lo {
			return part{}, fmt.Errorf("there is no data for elements %d to %d of piece %d", t.Lo, t.Hi, t.Of)
		}
		p := &mine[t.Of]
		size := dtypes[p.Type]
		out = append(out, data[t.Of].Part((t.Lo-p.Lo)*size, (t.Hi-p.Lo)*size))
	}
	n := len(o.Tasks)
	if own != nil {
		n, out = n+1, append(out, content.Content{B: own})
	}
	h := newHeader(n, func(i int) entry {
		if i == len(o.Tasks) {
			return entry{stateName, "U8", []int{len(own)}}
		}
		t := o.Tasks[i]
		p := &mine[t.Of]
		shape := []int{t.Hi - t.Lo}
		if t.Lo == 0 && t.Hi == prod(p.Size) {
			shape = p.Size
		}
		return entry{fmt.Sprintf("%s#%v+%v[%d:%d]", p.Name, p.Offset, p.Size, t.Lo, t.Hi), p.Type, shape}
	})
	size := h.size
	for _, b := range out {
		size += int64(b.Len())
	}
	f, err := d.create(dir, o.Tmp, name, size, func(w io.Writer) error {
		if err := h.write(w); err != nil {
			return err
		}
		small := bufio.NewWriterSize(w, 64<<10) // of a million tensors most have a few bytes; what is larger goes past it
		for _, b := range out {
			if err := b.To(small); err != nil {
				return err
			}
		}
		return small.Flush()
	})
	if err != nil {
		return part{}, err
	}
	return part{f, h.size, int64(len(own))}, nil
}

// finish publishes ix, with what the ranks say of their parts.
func finish(d target, dir, tmp string, ix *index, parts [][]byte) error {
	at, own := make([]int64, len(parts)), make([]int64, len(parts))
	for r, text := range parts {
		p, err := decode[part](text)
		if err != nil {
			return err
		}
		ix.Files, at[r], own[r] = append(ix.Files, p.File), p.Header, p.Own
	}
	for i := range ix.Pieces { // which each rank has written in this order
		p := &ix.Pieces[i]
		p.At = at[p.File]
		at[p.File] += int64((p.Hi - p.Lo) * dtypes[p.Type])
	}
	if slices.Max(own) > 0 { // and after it the rank's state
		for r := range own {
			ix.Own = append(ix.Own, span{at[r], own[r]})
		}
	}
	return d.publish(dir, tmp, ix)
}

// once makes sure that no two pieces have the same elements of a box.
func once(mine []piece) error {
	order := make([]int, len(mine))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		p, q := &mine[a], &mine[b]
		return cmp.Or(cmp.Compare(p.Name, q.Name), slices.Compare(p.Offset, q.Offset), slices.Compare(p.Size, q.Size),
			cmp.Compare(p.Lo, q.Lo))
	})
	var before *piece // of those of the box the one that ends last
	for _, i := range order {
		p := &mine[i]
		alike := before != nil && p.Name == before.Name && slices.Equal(p.Offset, before.Offset) &&
			slices.Equal(p.Size, before.Size)
		if alike && p.Lo < before.Hi && p.Lo < p.Hi {
			return fmt.Errorf("tensor %q is there twice: elements %d to %d and %d to %d", p.Name, before.Lo, before.Hi, p.Lo,
				p.Hi)
		}
		if !alike || p.Hi > before.Hi {
			before = p
		}
	}
	return nil
}
