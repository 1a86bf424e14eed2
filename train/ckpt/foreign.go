package ckpt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccl/goccl/internal/files"
)

const (
	modelName      = "model.safetensors"
	modelIndexName = "model.safetensors.index.json"
)

// foreign is the index of the tensors that another program has written to dir, or nil if there are none.
func foreign(dir string) (*index, error) {
	ix := &index{Tensors: map[string]tensor{}, Others: map[string]other{}, From: modelIndexName}
	f, size, err := files.OpenIn(dir, modelIndexName, maxIndex)
	var where struct {
		Files map[string]string `json:"weight_map"`
	}
	switch {
	case err == nil:
		defer f.Close()
		text := make([]byte, size)
		if _, err := io.ReadFull(f, text); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &where); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		if where.Files == nil {
			return nil, fmt.Errorf("%s has no weight_map", filepath.Join(dir, modelIndexName))
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	default:
		if _, err := os.Lstat(filepath.Join(dir, modelName)); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		ix.From = modelName
	}
	names := []string{modelName}
	if ix.From == modelIndexName {
		names = slices.Compact(slices.Sorted(maps.Values(where.Files)))
	}
	for i, name := range names {
		f, ps, others, err := foreignFile(dir, name)
		if err != nil {
			return nil, err
		}
		ix.Files = append(ix.Files, f)
		// Which of several files has a tensor, the index says.
		elsewhere := func(tensor string) bool { in := where.Files[tensor]; return in != "" && in != name }
		for _, p := range ps {
			if elsewhere(p.Name) {
				continue
			}
			if _, twice := ix.Tensors[p.Name]; twice {
				return nil, fmt.Errorf("%s: tensor %q is also in another file", filepath.Join(dir, name), p.Name)
			}
			p.File = i
			ix.Tensors[p.Name], ix.Pieces = tensor{p.Type, p.Shape}, append(ix.Pieces, p)
		}
		for tensor, what := range others {
			if !elsewhere(tensor) {
				ix.Others[tensor] = what
			}
		}
	}
	return ix, nil
}

func foreignFile(dir, name string) (f file, ps []piece, others map[string]other, err error) {
	if !plain(name) {
		return f, nil, nil, fmt.Errorf("%s names the file %q, which is not beside it", filepath.Join(dir, modelIndexName),
			name)
	}
	o, size, err := files.OpenIn(dir, name, math.MaxInt64)
	if err != nil {
		return f, nil, nil, err
	}
	defer o.Close()
	if ps, others, err = parseHeader(o, size); err != nil {
		return f, nil, nil, fmt.Errorf("%s: %w", o.Name(), err)
	}
	return file{Name: name, Size: size}, ps, others, nil
}
