package ckpt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// Contents is what a checkpoint holds.
type Contents struct {
	// State is what Save was given, as JSON. It is nil where another program has written.
	State json.RawMessage
	// Tensors are in the order of their names.
	Tensors []TensorInfo
	// Files are in the order of the ranks that have written them.
	Files []FileInfo
}

// TensorInfo is a tensor of a checkpoint.
type TensorInfo struct {
	Name string
	// Type is safetensors' name for the type of the elements, such as F32 or BF16.
	Type  string
	Shape []int
}

// FileInfo is a file of a checkpoint.
type FileInfo struct {
	Name string
	Size int64
	// Tensors are the names of those that have elements in the file, in order.
	Tensors []string
	// Damage is what is wrong with the file. It is nil if the file is whole.
	Damage error
}

// Inspect lists what the checkpoint dir holds, of this package or of another program, and which of
// its files are there in their sizes. One process calls it. It reads no tensors.
func Inspect(dir string) (*Contents, error) {
	c, _, err := inspect(folder(filepath.Clean(dir)))
	return c, err
}

// Verify is Inspect, and also reads each file and compares its checksums, which files of another
// program do not have. It takes memory for 4 MiB.
func Verify(dir string) (*Contents, error) { return verify(folder(filepath.Clean(dir))) }

func verify(src source) (*Contents, error) {
	c, ix, err := inspect(src)
	if err != nil {
		return nil, err
	}
	for i := range c.Files {
		if f := &c.Files[i]; f.Damage == nil {
			f.Damage = ix.Files[i].verify(src)
		}
	}
	return c, nil
}

func inspect(src source) (*Contents, *index, error) {
	ix, err := openIndex(src)
	if err != nil {
		return nil, nil, fmt.Errorf("ckpt: %s: %w", src.path(""), err)
	}
	c := &Contents{State: ix.State}
	for name, t := range ix.Tensors {
		c.Tensors = append(c.Tensors, TensorInfo{name, t.Type, t.Shape})
	}
	for name, o := range ix.Others {
		c.Tensors = append(c.Tensors, TensorInfo{name, o.Type, o.ints()})
	}
	slices.SortFunc(c.Tensors, func(a, b TensorInfo) int { return cmp.Compare(a.Name, b.Name) })
	in := make([]map[string]bool, len(ix.Files))
	for _, p := range ix.Pieces {
		if in[p.File] == nil {
			in[p.File] = map[string]bool{}
		}
		in[p.File][p.Name] = true
	}
	for i := range ix.Files {
		f := &ix.Files[i]
		c.Files = append(c.Files, FileInfo{f.Name, f.Size, slices.Sorted(maps.Keys(in[i])), f.present(src)})
	}
	return c, ix, nil
}

// verify reads all blocks of a part.
func (f *file) verify(src source) error {
	p, err := openPart(src, f)
	if err != nil {
		return err
	}
	defer p.Close()
	for k := int64(0); k*block < f.Size; k++ {
		if _, err := p.block(k); err != nil {
			return err
		}
	}
	return nil
}
