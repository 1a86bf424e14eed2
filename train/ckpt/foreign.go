package ckpt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
)

// modelName is the file that Hugging Face's models are in. One that is in several has the same name and indexEnd.
const (
	modelName = "model.safetensors"
	indexEnd  = ".index.json"
)

// foreign is the index of the tensors that another program has written to the file name of src, or
// nil if there are none.
func foreign(src source, name string) (*index, error) {
	if !plain(name) {
		return nil, fmt.Errorf("%q is no name of a file in %s", name, src.path(""))
	}
	ix := &index{Tensors: map[string]tensor{}, Others: map[string]other{}, From: name}
	var where struct {
		Files map[string]string `json:"weight_map"`
	}
	if src.lacks(name) { // which transformers takes before an index
		ix.From = name + indexEnd
		f, size, err := src.open(ix.From, maxIndex)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, err
		}
		defer f.Close()
		text := make([]byte, size)
		if _, err := io.ReadFull(io.NewSectionReader(f, 0, size), text); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &where); err != nil {
			return nil, fmt.Errorf("%s: %w", src.path(ix.From), err)
		}
		if where.Files == nil {
			return nil, fmt.Errorf("%s has no weight_map", src.path(ix.From))
		}
	}
	names := []string{name}
	if ix.From != name {
		names = slices.Compact(slices.Sorted(maps.Values(where.Files)))
	}
	for i, name := range names {
		f, ps, others, err := foreignFile(src, name, ix.From)
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
				return nil, fmt.Errorf("%s: tensor %q is also in another file", src.path(name), p.Name)
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

func foreignFile(src source, name, from string) (f file, ps []piece, others map[string]other, err error) {
	if !plain(name) {
		return f, nil, nil, fmt.Errorf("%s names the file %q, which is not beside it", src.path(from), name)
	}
	o, size, err := src.open(name, math.MaxInt64)
	if err != nil {
		return f, nil, nil, err
	}
	defer o.Close()
	if ps, others, err = parseHeader(o, size); err != nil {
		return f, nil, nil, fmt.Errorf("%s: %w", src.path(name), err)
	}
	return file{Name: name, Size: size}, ps, others, nil
}
