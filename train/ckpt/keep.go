package ckpt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
)

// Keep removes from dir all but the newest n whole checkpoints whose names Step has made, and what a Save of a step before
// the newest has left unfinished. Rank 0 removes; all ranks get its error. A checkpoint that is to go is renamed first, so
// that no half of one is taken for a whole. What is damaged stays, and does not count.
func Keep(ctx context.Context, c *ccl.Comm, dir string, n int) error {
	what := fmt.Sprintf("ckpt: Keep %d in %s", n, dir)
	var bad error
	if n < 1 {
		bad = errors.New("at least one checkpoint must be kept")
	}
	if err := same.Args(ctx, c, what, bad, "the directory "+dir, fmt.Sprintf("%d to keep", n)); err != nil {
		return err
	}
	var err error
	if c.Rank() == 0 {
		err = (&disk{}).keep(dir, n)
	}
	return same.Args(ctx, c, what, err)
}

// keep is Keep on rank 0.
func (d *disk) keep(dir string, n int) error {
	steps, err := wholeSteps(dir)
	if err != nil {
		return err
	}
	if len(steps) == 0 {
		return nil
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(b.number, a.number) })
	for _, s := range steps[min(n, len(steps)):] {
		name := filepath.Join(dir, s.name)
		if err := d.ask("rename", name); err != nil {
			return err
		}
		if err := os.Rename(name, name+goneSuffix); err != nil {
			return err
		}
	}
	if err := d.syncDir(dir); err != nil {
		return err
	}
	es, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range es {
		rest := strings.TrimSuffix(strings.TrimSuffix(e.Name(), goneSuffix), tmpSuffix)
		number, ok := stepOf(rest)
		if !ok || rest == e.Name() || number > steps[0].number { // a whole one, or that of a Save that goes on
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// goneSuffix is what the name of a checkpoint gets that is being removed, tmpSuffix that of one that is being written.
const (
	goneSuffix = ".gone"
	tmpSuffix  = ".tmp"
)
