package ckpt

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/train/ckpt/internal/content"
)

// Export writes the whole tensors of the checkpoint dir to the directory to, as Hugging Face lays them out:
// model.safetensors, or, if that takes more than size bytes of tensors, model-00001-of-0000k.safetensors with
// model.safetensors.index.json. With a size of 0 it is one file; a tensor larger than size gets a file of its own. One
// process calls it, and needs memory for the largest tensor, or 64 MiB. Like Save it leaves all of to or nothing.
//
// as gives each tensor the name and the shape that it is to have; none with the name "". If as is nil they are those
// of the checkpoint. It is where a fused matrix, which package tp saves with three dimensions, gets its two again.
func Export(dir, to string, size int64, as func(name string, shape []int) (string, []int)) error {
	return ExportFile(dir, to, modelName, size, as)
}

// ExportFile is Export to a file of another name in place of model.safetensors, such as peft's
// adapter_model.safetensors.
func ExportFile(dir, to, file string, size int64, as func(name string, shape []int) (string, []int)) error {
	if err := (&disk{}).export(filepath.Clean(dir), filepath.Clean(to), file, size, as); err != nil {
		return fmt.Errorf("ckpt: Export of %s to %s: %w", dir, to, err)
	}
	return nil
}

func (d *disk) export(dir, to, file string, size int64, as func(name string, shape []int) (string, []int)) (err error) {
	stem, is := strings.CutSuffix(file, ".safetensors")
	if !is || stem == "" || !plain(file) {
		return fmt.Errorf("the file is called %q: want NAME.safetensors", file)
	}
	src := folder(dir)
	ix, err := openIndex(src)
	if err != nil {
		return err
	}
	files, err := ix.pack(size, as)
	if err != nil {
		return err
	}
	if err := ix.needed(files).present(src); err != nil { // before there is memory for all that the index says there is
		return err
	}
	heads := make([]*streamed, len(files))
	where, total := map[string]string{}, 0
	name := func(i int) string {
		if len(files) == 1 {
			return file
		}
		return fmt.Sprintf("%s-%05d-of-%05d.safetensors", stem, i+1, len(files))
	}
	for i, es := range files {
		entries := make([]entry, len(es))
		for k, e := range es {
			entries[k], where[e.name] = e.entry, name(i)
			total += e.bytes()
		}
		most := cmp.Or(d.header, maxHeader)
		heads[i] = newHeader(len(entries), func(k int) entry { return entries[k] })
		if n := heads[i].size - 8; n > int64(most) {
			return fmt.Errorf("%s would have a header of %d bytes, and readers of safetensors take at most %d: give a smaller size, for more files",
				name(i), n, most)
		}
	}
	tmp, _, err := d.take(to)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			d.discard(to, tmp)
		}
	}()
	for i, es := range files {
		_, err := d.write(filepath.Join(tmp, name(i)), func(w io.Writer) error {
			if err := heads[i].write(w); err != nil {
				return err
			}
			return ix.copy(w, src, es)
		})
		if err != nil {
			return d.lost(tmp, err)
		}
	}
	if len(files) > 1 {
		text, err := json.MarshalIndent(map[string]any{"metadata": map[string]int{"total_size": total},
			"weight_map": where}, "", "  ")
		if err == nil {
			_, err = d.write(filepath.Join(tmp, file+indexEnd),
				func(w io.Writer) error { _, err := w.Write(text); return err })
		}
		if err != nil {
			return d.lost(tmp, err)
		}
	}
	return d.rename(to, tmp)
}

// needed is ix with those of its files alone that have elements of what is exported: of a damaged
// checkpoint what is left can be.
func (ix *index) needed(files [][]exported) *index {
	in := make([]bool, len(ix.Files))
	for _, es := range files {
		for _, e := range es {
			for _, p := range ix.of[e.from.Name] {
				in[p.File] = true
			}
		}
	}
	n := &index{}
	for i, f := range ix.Files {
		if in[i] {
			n.Files = append(n.Files, f)
		}
	}
	return n
}

// together is how many bytes of tensors Export reads at once, unless one is larger: each block of a
// part that they are in is read and verified once.
const together = 64 << 20

// copy writes tensors, whole, one after the other.
func (ix *index) copy(w io.Writer, src source, es []exported) error {
	var memory []byte
	for len(es) > 0 {
		n, k := 0, 0
		for ; k < len(es) && (k == 0 || n+es[k].bytes() <= together); k++ {
			n += es[k].bytes()
		}
		if cap(memory) < n {
			memory = make([]byte, n)
		}
		var want []piece
		var data []content.Content
		rest := memory[:n]
		for _, e := range es[:k] {
			want, data, rest = append(want, e.from), append(data, content.Content{B: rest[:e.bytes()]}), rest[e.bytes():]
		}
		if err := ix.fill(src, want, data, false); err != nil {
			return err
		}
		if _, err := w.Write(memory[:n]); err != nil {
			return err
		}
		es = es[k:]
	}
	return nil
}

// exported is a tensor, and what it comes from.
type exported struct {
	entry
	from piece
}

func (e exported) bytes() int { return e.from.Hi * dtypes[e.dtype] }

// pack says which tensors go into which file, in the order of their names.
func (ix *index) pack(size int64, as func(string, []int) (string, []int)) (files [][]exported, err error) {
	left, seen := int64(0), map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(ix.Tensors)) {
		t, have := ix.Tensors[name], 0
		from, err := wholePiece(name, t.Type, t.Shape)
		if err != nil {
			return nil, err
		}
		for _, p := range ix.of[name] {
			have += p.Hi - p.Lo
		}
		if have != from.Hi { // before there is memory for all that the index says there is
			return nil, fmt.Errorf("tensor %q has %d elements, but %d are present", name, from.Hi, have)
		}
		e := exported{entry{name, t.Type, t.Shape}, from}
		if as != nil {
			e.name, e.shape = as(name, slices.Clone(t.Shape))
		}
		if e.name == "" {
			continue
		}
		to, err := wholePiece(e.name, t.Type, e.shape)
		switch {
		case err != nil:
			return nil, err
		case to.Hi != from.Hi:
			return nil, fmt.Errorf("tensor %q of shape %v cannot have shape %v", name, t.Shape, e.shape)
		case e.name == metadata:
			return nil, fmt.Errorf("tensor %q: safetensors reserves the name %s", name, metadata)
		case seen[e.name] != "":
			return nil, fmt.Errorf("tensors %q and %q would both be named %q", seen[e.name], name, e.name)
		}
		seen[e.name] = name
		if n := int64(e.bytes()); files == nil || size > 0 && n > left {
			files, left = append(files, nil), size-n
		} else {
			left -= n
		}
		files[len(files)-1] = append(files[len(files)-1], e)
	}
	for _, name := range slices.Sorted(maps.Keys(ix.Others)) {
		o := ix.Others[name]
		if as != nil {
			if to, _ := as(name, o.ints()); to == "" {
				continue
			}
		}
		return nil, fmt.Errorf("tensor %q is %v, which Export cannot write: leave it out", name, o)
	}
	if files == nil {
		return nil, errors.New("there is nothing to export")
	}
	for _, es := range files { // each tensor at a multiple of its element's size
		slices.SortStableFunc(es, func(a, b exported) int { return cmp.Compare(dtypes[b.dtype], dtypes[a.dtype]) })
	}
	return files, nil
}
