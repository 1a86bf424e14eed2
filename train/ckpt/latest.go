package ckpt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
)

// Step is the name of the checkpoint of a step in dir: dir/step-00001000. Latest and Keep look for those of
// steps from 0 on.
func Step(dir string, step int) string { return filepath.Join(dir, fmt.Sprintf("step-%08d", step)) }

// Latest is the whole checkpoint of the highest step in dir, whose entries Step names: rank 0 looks, and tells all. If
// there is none, all ranks get an error that wraps os.ErrNotExist on rank 0.
func Latest(ctx context.Context, c *ccl.Comm, dir string) (string, error) {
	what := "ckpt: Latest in " + dir
	name, err := []byte(nil), error(nil)
	if c.Rank() == 0 {
		var s string
		s, err = latest(dir)
		name = []byte(s)
	}
	if err := same.Args(ctx, c, what, err, "the directory "+dir); err != nil {
		return "", err
	}
	if name, err = broadcast(ctx, c, name); err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return string(name), nil
}

func latest(dir string) (string, error) {
	steps, err := wholeSteps(dir)
	if err != nil {
		return "", err
	}
	best := step{number: -1}
	for _, s := range steps {
		if s.number > best.number {
			best = s
		}
	}
	if best.number < 0 {
		return "", fmt.Errorf("no complete checkpoint there: %w", os.ErrNotExist)
	}
	return filepath.Join(dir, best.name), nil
}

// step is a checkpoint in its directory.
type step struct {
	number int
	name   string
}

// stepOf is the number in a name that Step has made.
func stepOf(name string) (number int, ok bool) {
	digits, ok := strings.CutPrefix(name, "step-")
	number, err := strconv.Atoi(digits)
	return number, ok && err == nil && number >= 0
}

// wholeSteps lists the checkpoints in dir that have an index.
func wholeSteps(dir string) (list []step, err error) {
	es, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range es {
		number, ok := stepOf(e.Name())
		if !ok {
			continue
		}
		if text, err := readIndex(filepath.Join(dir, e.Name())); err != nil {
			continue
		} else if _, err := parseIndex(text); err != nil {
			continue
		}
		list = append(list, step{number, e.Name()})
	}
	return list, nil
}
