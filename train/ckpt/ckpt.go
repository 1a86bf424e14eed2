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
	"fmt"
	"path/filepath"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
)

// Save writes what all ranks of c hold into dir, which must not be there yet. It returns when everything is on disk
// under that name, or with an error on every rank: os.ErrExist if dir is there, and syscall.ENOSPC if the disk is full.
// state, of rank 0, is kept as JSON. It writes to a directory with a name of its own beside dir, syncs, and renames, so under
// the name dir there is a whole checkpoint or none. Of two jobs that save to one dir at once, one gets an error. An error
// after the renaming, in the sync of the directory above, is an error of Save's although the checkpoint is there. ts must not
// change meanwhile. A tensor with elements that no rank holds is an error, and so are two on one rank that have the same
// elements of one name. What several ranks hold under one name must be alike: one of them writes it.
func Save(ctx context.Context, c *ccl.Comm, dir string, state any, ts []Tensor) error {
	return save(ctx, c, &disk{}, dir, state, ts)
}

// orders are what rank 0 tells a rank to write, and where.
type orders struct {
	Tmp   string `json:"tmp"`
	Tasks []task `json:"tasks"`
}

func save(ctx context.Context, c *ccl.Comm, d *disk, dir string, state any, ts []Tensor) error {
	dir = filepath.Clean(dir)
	what := "ckpt: Save to " + dir
	mine, data, err := describe(ts)
	if err == nil {
		err = once(mine)
	}
	if err := same.Args(ctx, c, what, err, "the directory "+dir); err != nil {
		return err
	}
	held, err := toRoot(ctx, c, mine)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var ix *index
	all := make([]orders, c.Size())
	tmp := ""
	if c.Rank() == 0 {
		if ix, tmp, err = d.begin(dir, state, held, all); err != nil && tmp != "" {
			d.discard(tmp)
		}
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
		wrote, err = d.write(my, partName(c.Rank(), c.Size()), mine, data)
		err = lost(my.Tmp, err)
	}
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
		if err = d.finish(dir, tmp, ix, parts); err != nil {
			d.discard(tmp)
		}
	}
	return same.Args(ctx, c, what, err)
}

// begin plans, makes the directory that is written to, and gives the ranks their orders.
func (d *disk) begin(dir string, state any, held [][]byte, all []orders) (ix *index, tmp string, err error) {
	pieces := make([][]piece, len(held))
	for r, text := range held {
		if pieces[r], err = decode[[]piece](text); err != nil {
			return nil, "", err
		}
	}
	ix, tasks, err := plan(pieces, state)
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
