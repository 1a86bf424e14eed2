package ckpt

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	modelName      = "model.safetensors"
	modelIndexName = "model.safetensors.index.json"
	metadata       = "__metadata__" // what no tensor can be named
	maxHeader      = 100_000_000    // what safetensors itself accepts
)

// entry is a tensor in the header of a file.
type entry struct {
	name, dtype string
	shape       []int
}

// field is an entry as the file has it.
type field struct {
	Type    string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// header is the beginning of a file in safetensors format, whose tensors follow one another.
func header(es []entry) []byte {
	head, at := map[string]any{metadata: map[string]string{"format": "pt"}}, int64(0) // which transformers asks for
	for _, e := range es {
		end := at + int64(prod(e.shape)*dtypes[e.dtype])
		head[e.name] = field{e.dtype, append([]int{}, e.shape...), [2]int64{at, end}}
		at = end
	}
	text, _ := json.Marshal(head) // of types that have no error
	text = append(text, strings.Repeat(" ", (8-len(text)%8)%8)...)
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
}

// parseHeader lists the tensors of a file of unknown origin, of size bytes. That they lie in it parseIndex verifies.
func parseHeader(r io.ReaderAt, size int64) ([]piece, error) {
	first := make([]byte, 8)
	if _, err := r.ReadAt(first, 0); err != nil {
		return nil, fmt.Errorf("the header's length is missing: %w", err)
	}
	n := binary.LittleEndian.Uint64(first)
	if n > maxHeader || int64(n) > size-8 {
		return nil, fmt.Errorf("a header of %d bytes in a file of %d; at most %d", n, size, maxHeader)
	}
	text := make([]byte, n)
	if _, err := r.ReadAt(text, 8); err != nil && n > 0 {
		return nil, err
	}
	var head map[string]json.RawMessage
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	delete(head, metadata)
	var ps []piece
	for _, name := range slices.Sorted(maps.Keys(head)) {
		var f field
		if err := json.Unmarshal(head[name], &f); err != nil {
			return nil, fmt.Errorf("the header: tensor %q: %w", name, err)
		}
		p, err := whole(name, f.Type, f.Shape)
		if err != nil {
			return nil, fmt.Errorf("the header: %w", err)
		}
		lo, hi := f.Offsets[0], f.Offsets[1]
		if lo < 0 || hi < lo || hi > size-8-int64(n) || hi-lo != int64(p.Hi*dtypes[p.Type]) {
			return nil, fmt.Errorf("the header: tensor %q, %s %v, lies between bytes %d and %d of %d", name, f.Type, f.Shape, lo, hi, size-8-int64(n))
		}
		p.At = 8 + int64(n) + lo
		ps = append(ps, p)
	}
	return ps, nil
}

// foreign is the index of the tensors that another program has written to dir, or nil if there are none.
func foreign(dir string) (*index, error) {
	names := []string{modelName}
	text, err := os.ReadFile(filepath.Join(dir, modelIndexName))
	if err == nil {
		var m struct {
			Files map[string]string `json:"weight_map"`
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, fmt.Errorf("%s: %w", modelIndexName, err)
		}
		names = slices.Compact(slices.Sorted(maps.Values(m.Files)))
	} else if _, single := os.Stat(filepath.Join(dir, modelName)); errors.Is(err, os.ErrNotExist) && errors.Is(single, os.ErrNotExist) {
		return nil, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	ix := &index{Tensors: map[string]tensor{}}
	for i, name := range names {
		f, ps, err := foreignFile(dir, name)
		if err != nil {
			return nil, err
		}
		ix.Files = append(ix.Files, f)
		for _, p := range ps {
			if _, twice := ix.Tensors[p.Name]; twice {
				return nil, fmt.Errorf("%s: tensor %q is also in another file", filepath.Join(dir, name), p.Name)
			}
			p.File = i
			ix.Tensors[p.Name], ix.Pieces = tensor{p.Type, p.Shape}, append(ix.Pieces, p)
		}
	}
	return ix, nil
}

func foreignFile(dir, name string) (f file, ps []piece, err error) {
	if !plain(name) {
		return f, nil, fmt.Errorf("%s names the file %q, which is not beside it", modelIndexName, name)
	}
	o, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return f, nil, err
	}
	defer o.Close()
	info, err := o.Stat()
	if err != nil {
		return f, nil, err
	}
	if ps, err = parseHeader(o, info.Size()); err != nil {
		return f, nil, fmt.Errorf("%s: %w", o.Name(), err)
	}
	return file{Name: name, Size: info.Size()}, ps, nil
}
