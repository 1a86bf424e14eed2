// Package ckpt saves checkpoints of a job in parts, a file per rank, and loads them into any other
// layout, as PyTorch's distributed checkpoint (DCP): other numbers of ranks, other ZeRO stages,
// other tensor and pipeline splits. A file is in safetensors format. What several ranks hold alike
// is written once. A Saver does it while training goes on; Latest finds the last whole one, and
// Keep removes old ones. Export writes whole tensors for other programs, and Load reads theirs.
//
// All ranks see one directory: on several hosts it is on a file system that they share. Save and
// Load are collective and open no connections. Rank 0 plans in memory of O(pieces). Load holds the
// index, two blocks of 4 MiB, and a list of the runs of elements that it copies: one for each row
// of a piece that is split by columns. The name of a tensor is in memory once, beside the program's
// own: on rank 0 those that it does not have itself in Save, and on each rank those of the
// checkpoint in Load.
package ckpt

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/goccl/goccl/ccl"
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
	return save(ctx, c, &disk{}, dir, state, ts)
}

// orders are what rank 0 tells a rank to write, and where.
type orders struct {
	Tmp   string `json:"tmp"`
	Tasks []task `json:"tasks"`
}

func save(ctx context.Context, c *ccl.Comm, d *disk, dir string, state any, ts []Tensor) (err error) {
	dir = filepath.Clean(dir)
	what, tmp := "ckpt: Save to "+dir, ""
	defer func() { // on rank 0, which has made it; once dir is there, tmp is not
		if err != nil && tmp != "" {
			d.discard(tmp)
		}
	}()
	mine, data, err := describe(hosted(ts, nil, true))
	job, own, bad := split(state)
	if err := same.Args(ctx, c, what, cmp.Or(err, once(mine), bad), "the directory "+dir); err != nil {
		return err
	}
	held, bad, err := collect(ctx, c, mine, cmp.Or(d.atOnce, atOnce))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var ix *index
	all := make([]orders, c.Size())
	if err = bad; c.Rank() == 0 && bad == nil {
		ix, tmp, err = d.begin(dir, job, held, all)
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
		wrote, err = d.write(my, partName(c.Rank(), c.Size()), mine, data, own)
		err = lost(my.Tmp, err)
	}
	if err := same.Args(ctx, c, what, err); err != nil {
		return err
	}
	parts, err := toRoot(ctx, c, wrote)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if c.Rank() == 0 {
		err = d.finish(dir, tmp, ix, parts)
	}
	return same.Args(ctx, c, what, err)
}

// begin plans, makes the directory that is written to, and gives the ranks their orders.
func (d *disk) begin(dir string, state any, held [][]piece, all []orders) (ix *index, tmp string, err error) {
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
