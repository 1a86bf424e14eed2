package ckpt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
)

// Latest is the whole checkpoint in dir that was saved last, of those that Step has named: its
// index is not damaged, and each of its files has its size. passed says of each that was saved
// after it why it is not whole. Rank 0 looks, and tells all.
//
// If there is none, not even a damaged one, all ranks get an error that is os.ErrNotExist: a
// program that resumes or begins may ask for that. If all are damaged, the error is another one.
func Latest(ctx context.Context, c *ccl.Comm, dir string) (latest string, passed []error, err error) {
	return latestOf(ctx, c, &disk{}, dir)
}

func latestOf(ctx context.Context, c *ccl.Comm, cat catalog, dir string) (latest string, passed []error, err error) {
	what := "ckpt: Latest in " + dir
	var found []string
	if c.Rank() == 0 {
		latest, passed, err = findLatest(cat, dir)
		err = cmp.Or(cat.Failed(), err)
		found = append(found, latest)
		for _, e := range passed {
			found = append(found, e.Error())
		}
	}
	if err := same.Args(ctx, c, what, err, "the directory "+dir); err != nil {
		return "", nil, err
	}
	text, err := same.Give(ctx, c, encode(found), 0)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", what, err)
	}
	found, err = decode[[]string](text)
	if err := same.Args(ctx, c, what, err); err != nil {
		return "", nil, err
	}
	passed = nil
	for _, e := range found[1:] {
		passed = append(passed, errors.New(e))
	}
	return found[0], passed, nil
}

func findLatest(cat catalog, dir string) (latest string, passed []error, err error) {
	steps, err := listSteps(cat, dir)
	if err != nil {
		return "", nil, err
	}
	for _, s := range steps {
		src := cat.at(dir, s.name)
		name, err := src.path(""), whole(src)
		if err == nil {
			return name, passed, nil
		}
		passed = append(passed, fmt.Errorf("%s is not whole: %w", name, err))
	}
	if len(steps) == 0 {
		return "", nil, fmt.Errorf("no checkpoint there: %w", fs.ErrNotExist)
	}
	// Not os.ErrNotExist, whatever is missing: a program that begins by that would train over what can be mended.
	return "", nil, fmt.Errorf("none of the %d there is whole: %v", len(steps), errors.Join(passed...))
}

// step is a checkpoint in its directory.
type step struct {
	sequence int64 // its place in time
	number   int
	name     string
}

// listSteps lists the checkpoints in dir, the last one first: where a training has gone back, that
// is not the highest step.
func listSteps(cat catalog, dir string) (list []step, err error) {
	if list, err = cat.list(dir); err != nil {
		return nil, err
	}
	// One whose place is not known, since its index is gone, comes where its number belongs.
	slices.SortFunc(list, func(a, b step) int { return cmp.Compare(a.number, b.number) })
	last := int64(0)
	for i := range list {
		if list[i].sequence == 0 {
			list[i].sequence = last
		}
		last = max(last, list[i].sequence)
	}
	slices.SortFunc(list, func(a, b step) int {
		return -cmp.Or(cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.number, b.number))
	})
	return list, nil
}

const maxSequence = 1 << 53

// begins is how an index begins: its place among the checkpoints of a directory comes first.
var begins = regexp.MustCompile(`^\{"format":"goccl-ckpt/1","crc32c":\d+,"index":\{"sequence":(\d+)[,}]`)

// Failed is nil: what a disk cannot read counts as damage.
func (d *disk) Failed() error { return nil }

func (d *disk) at(dir, name string) source { return folder(filepath.Join(dir, name)) }

func (d *disk) list(dir string) (list []step, err error) {
	es, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range es {
		if number, ok := stepOf(e.Name()); ok {
			list = append(list, step{sequenceOf(d.at(dir, e.Name())), number, e.Name()})
		}
	}
	return list, nil
}

// sequenceIn is the sequence that an index says at its beginning; 0 if there is none.
func sequenceIn(f opened) int64 {
	b := make([]byte, 128)
	n, _ := f.ReadAt(b, 0)
	m := begins.FindSubmatch(b[:n])
	if m == nil {
		return 0
	}
	k, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil || k >= maxSequence {
		return 0
	}
	return k
}

// whole is an error if src is not a whole checkpoint.
func whole(src source) error {
	ix, err := openIndex(src)
	if err != nil {
		return err
	}
	return ix.present(src)
}

// present is an error unless each file is in src, in its size. It names those that are not, and those that are.
func (ix *index) present(src source) error {
	bad, good := ix.look(src)
	if bad == nil {
		return nil
	}
	return fmt.Errorf("%s; whole by size: %s", some(bad), some(good))
}

// look says what is wrong with files in src, and names those that are there in their sizes.
func (ix *index) look(src source) (bad, good []string) {
	for i := range ix.Files {
		if err := ix.Files[i].present(src); err != nil {
			bad = append(bad, err.Error())
		} else {
			good = append(good, ix.Files[i].Name)
		}
	}
	return bad, good
}

// present is an error unless the file is in src, in its size.
func (f *file) present(src source) error {
	o, err := f.open(src)
	if err != nil {
		return err
	}
	return o.Close()
}

// open opens the file, if it is in src, in its size.
func (f *file) open(src source) (opened, error) {
	name := src.path(f.Name)
	o, size, err := src.open(f.Name, math.MaxInt64)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is missing", name) // which is damage: the checkpoint exists
	case err != nil:
		return nil, err
	case size < f.Size:
		err = fmt.Errorf("%s is truncated: it has %d bytes of %d", name, size, f.Size)
	case size > f.Size:
		err = fmt.Errorf("%s has %d bytes, but should have %d", name, size, f.Size)
	default:
		return o, nil
	}
	return nil, errors.Join(err, o.Close())
}

// some lists the first names, and counts the rest.
func some(names []string) string {
	const most = 4
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}
