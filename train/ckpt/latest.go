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

// Step is the name of the checkpoint of a step in dir: dir/step-00001000.
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
	es, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	best, found := -1, ""
	for _, e := range es {
		digits, ok := strings.CutPrefix(e.Name(), "step-")
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n <= best {
			continue
		}
		if text, err := readIndex(filepath.Join(dir, e.Name())); err != nil {
			continue
		} else if _, err := parseIndex(text); err != nil {
			continue
		}
		best, found = n, filepath.Join(dir, e.Name())
	}
	if found == "" {
		return "", fmt.Errorf("no whole checkpoint there: %w", os.ErrNotExist)
	}
	return found, nil
}
