package ckpt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
)

// Keep removes from dir all but the n whole checkpoints that were saved last, of those whose names
// Step has made, and what a Save has left unfinished that began before the one before the last.
// Rank 0 removes; all ranks get its error. A checkpoint that is to go is renamed first, so that no
// half of one is taken for a whole. What is damaged stays, and does not count. A directory that is
// not there, or not yet, as before a Saver has made the first checkpoint of a run, has nothing to
// remove.
func Keep(ctx context.Context, c *ccl.Comm, dir string, n int) error {
	return keepIn(ctx, c, &disk{}, dir, n)
}

func keepIn(ctx context.Context, c *ccl.Comm, cat catalog, dir string, n int) error {
	what := fmt.Sprintf("ckpt: Keep %d in %s", n, dir)
	var bad error
	if n < 1 {
		bad = errors.New("at least one checkpoint must be kept")
	}
	return onRoot(ctx, c, what, bad, func() error { return keep(cat, dir, n) }, "the directory "+dir,
		fmt.Sprintf("%d to keep", n))
}

// onRoot calls f on rank 0, once all ranks have the same items and none is bad. All get its error.
func onRoot(ctx context.Context, c *ccl.Comm, what string, bad error, f func() error, items ...string) error {
	err := same.Args(ctx, c, what, bad, items...)
	if err != nil {
		return err
	}
	if c.Rank() == 0 {
		err = f()
	}
	return same.Args(ctx, c, what, err)
}

// keep is Keep on rank 0.
func keep(cat catalog, dir string, n int) error {
	steps, err := listSteps(cat, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var old []string
	kept, last := 0, int64(0)
	for _, s := range steps {
		if whole(cat.at(dir, s.name)) != nil {
			continue
		}
		if kept == 0 {
			last = s.sequence
		}
		if kept++; kept > n {
			old = append(old, s.name)
		}
	}
	if err := cat.Failed(); err != nil { // what could not be read is not known to be old
		return err
	}
	if kept == 0 { // what is unfinished may be the best that there is
		return nil
	}
	return cat.clear(dir, old, func(e entryName) bool { return e.gone || e.tmp && e.sequence < last })
}

// Forget removes from dir the checkpoints of the steps after step, those of any step that were
// saved after it, and what a Save of one of those has left unfinished, so that a training goes back
// to step and on from there: step is the Latest, and the steps that it saves again are not there
// yet. Step must be whole. Rank 0 removes; all ranks get its error.
func Forget(ctx context.Context, c *ccl.Comm, dir string, step int) error {
	return forgetIn(ctx, c, &disk{}, dir, step)
}

func forgetIn(ctx context.Context, c *ccl.Comm, cat catalog, dir string, step int) error {
	what := fmt.Sprintf("ckpt: Forget what is after step %d in %s", step, dir)
	return onRoot(ctx, c, what, nil, func() error { return forget(cat, dir, step) }, "the directory "+dir,
		fmt.Sprintf("step %d", step))
}

// forget is Forget on rank 0.
func forget(cat catalog, dir string, number int) error {
	if err := whole(cat.at(dir, Step("", number))); err != nil {
		return fmt.Errorf("there is no going back to it: %w", err)
	}
	steps, err := listSteps(cat, dir)
	if err = errors.Join(err, cat.Failed()); err != nil { // what could not be read has no place in time
		return err
	}
	at := slices.IndexFunc(steps, func(s step) bool { return s.number == number })
	if at < 0 { // another job has removed it since then
		return fmt.Errorf("there is no going back to %s: %w", Step(dir, number), fs.ErrNotExist)
	}
	sequence := steps[at].sequence
	var later []string
	for _, s := range steps {
		if s.number > number || s.sequence > sequence {
			later = append(later, s.name)
		}
	}
	return cat.clear(dir, later, func(e entryName) bool { return e.number > number || e.tmp && e.sequence > sequence })
}

// clear removes checkpoints from dir, by their names, and what else goes of that which is
// unfinished or half removed. Whenever it ends, each is whole under its name, or has lost it.
func (d *disk) clear(dir string, names []string, goes func(entryName) bool) error {
	es, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range es {
		if x := parseName(e.Name()); x.number >= 0 && (x.tmp || x.gone) && goes(x) {
			names = append(names, e.Name())
		}
	}
	for i, name := range names {
		if names[i], err = d.setAside(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := d.syncDir(dir); err != nil {
		return err
	}
	for _, gone := range names {
		if gone != "" {
			err = errors.Join(err, d.remove(gone))
		}
	}
	return err
}
