package ckpt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt/internal/content"
	"github.com/goccl/goccl/train/internal/same"
)

// LoadOptions say in what a checkpoint may differ from what a program wants. All ranks pass the same.
type LoadOptions struct {
	// Rename gives the name that a tensor of the program has in the checkpoint. Nil: the same.
	Rename func(name string) string
	// Convert reads numbers of floating point, of 16, 32 or 64 bits or bfloat16, of another type than that of Data. What
	// does not fit is rounded to nearest even, once.
	Convert bool
	// Partial leaves the Data of a tensor as it is if the checkpoint has none of its name, as
	// PyTorch's strict=False. One of another shape stays an error.
	Partial bool

	// File is the name of a file of safetensors in the directory, such as peft's
	// adapter_model.safetensors. "": what Save has written, or model.safetensors.
	File string

	atOnce int // of tests; the same on all ranks
}

// String is what ranks compare.
func (o LoadOptions) String() string {
	s := fmt.Sprintf("Rename %v, Convert %v, Partial %v", o.Rename != nil, o.Convert, o.Partial)
	if o.File != "" {
		s += ", File " + o.File
	}
	return s
}

// Report is what a Partial LoadWith has not matched, over all ranks and the same on all: in order, and each name once.
type Report struct {
	// Missing are the tensors of the program that the checkpoint does not have, by the program's names.
	Missing []string
	// Unused are the tensors of the checkpoint that no rank has asked for.
	Unused []string
}

// LoadWith is Load of a checkpoint that differs from what is wanted in what o allows. Without
// Partial the Report is empty.
func LoadWith(ctx context.Context, c *ccl.Comm, dir string, state any, ts []Tensor, o LoadOptions) (*Report, error) {
	return loadFrom(ctx, c, folder(filepath.Clean(dir)), state, ts, o)
}

// find gives what is wanted its names in ix, and leaves out what is missing there and may be.
func (o LoadOptions) find(ix *index, want []piece, data []content.Content) (found []piece,
	into []content.Content, missing []string) {
	if o.Rename == nil && !o.Partial {
		return want, data, nil
	}
	for i, w := range want {
		name := w.Name
		if o.Rename != nil {
			w.Name = o.Rename(name)
		}
		_, ok := ix.Tensors[w.Name]
		if _, other := ix.Others[w.Name]; o.Partial && !ok && !other {
			missing = append(missing, name)
			continue
		}
		found, into = append(found, w), append(into, data[i])
	}
	return found, into, missing
}

// report puts together what the ranks have found and missed. A byte for each tensor of the
// checkpoint says who wants it.
func (ix *index) report(ctx context.Context, c *ccl.Comm, found []piece, missing []string) (*Report, error) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(ix.Tensors)), maps.Keys(ix.Others))
	slices.Sort(names)
	place := make(map[string]int, len(names))
	for i, n := range names {
		place[n] = i
	}
	wanted := make([]uint8, len(names))
	for i := range found {
		wanted[place[found[i].Name]] = 1
	}
	if err := ccl.AllReduce(ctx, c, wanted, wanted, ccl.Max); err != nil {
		return nil, err
	}
	r := &Report{}
	for i, n := range names {
		if wanted[i] == 0 {
			r.Unused = append(r.Unused, n)
		}
	}
	slices.Sort(missing)
	list, err := toRoot(ctx, c, slices.Compact(missing))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, text := range list {
		some, bad := decode[[]string](text)
		all, err = append(all, some...), errors.Join(err, bad)
	}
	if err := same.Args(ctx, c, "the names", err); err != nil {
		return nil, err
	}
	slices.Sort(all)
	text, err := same.Give(ctx, c, encode(slices.Compact(all)), 0)
	if err != nil {
		return nil, err
	}
	r.Missing, err = decode[[]string](text)
	return r, err
}
