package ckpt

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

const (
	indexName = "index.json"
	format    = "goccl-ckpt/1"
)

type tensor struct {
	Type  string `json:"type"`
	Shape []int  `json:"shape"`
}

// piece is a range of a box of a tensor, and where it is.
type piece struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Shape  []int  `json:"shape"`
	Offset []int  `json:"offset"`
	Size   []int  `json:"size"`
	Lo     int    `json:"lo"`
	Hi     int    `json:"hi"`
	File   int    `json:"file"`
	At     int64  `json:"at"` // byte of the file
}

type file struct {
	Name string   `json:"name"`
	Size int64    `json:"size"`
	Sums []uint32 `json:"crc32c"` // of each 4 MiB
}

// part is what a rank says of its file.
type part struct {
	file
	Pieces []piece `json:"pieces"`
}

type index struct {
	State   json.RawMessage   `json:"state"`
	Tensors map[string]tensor `json:"tensors"`
	Files   []file            `json:"files"`
	Pieces  []piece           `json:"pieces"`
}

type envelope struct {
	Format string          `json:"format"`
	Sum    uint32          `json:"crc32c"` // of index
	Index  json.RawMessage `json:"index"`
}

// add takes what the ranks wrote.
func (ix *index) add(all [][]byte) error {
	ix.Pieces = nil
	for r, text := range all {
		var p part
		if err := json.Unmarshal(text, &p); err != nil {
			return fmt.Errorf("what rank %d wrote: %w", r, err)
		}
		ix.Files, ix.Pieces = append(ix.Files, p.file), append(ix.Pieces, p.Pieces...)
	}
	return nil
}

func (ix *index) text() ([]byte, error) {
	body, err := json.Marshal(ix)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{format, crc32.Checksum(body, castagnoli), body})
}

func readIndex(dir string) ([]byte, error) {
	return os.ReadFile(filepath.Join(dir, indexName))
}

// parseIndex takes text of unknown origin: what it returns refers to nothing outside of what it describes.
func parseIndex(text []byte) (*index, error) {
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", indexName, err)
	}
	if e.Format != format {
		return nil, fmt.Errorf("%s has format %q; this is for %q", indexName, e.Format, format)
	}
	if crc32.Checksum(e.Index, castagnoli) != e.Sum {
		return nil, fmt.Errorf("%s is damaged: its checksum does not fit", indexName)
	}
	ix := &index{}
	if err := json.Unmarshal(e.Index, ix); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", indexName, err)
	}
	for _, f := range ix.Files {
		blocks := f.Size / block
		if f.Size%block > 0 {
			blocks++
		}
		if f.Size < 0 || int64(len(f.Sums)) != blocks || f.Name == "" || f.Name != filepath.Base(f.Name) || !filepath.IsLocal(f.Name) {
			return nil, fmt.Errorf("%s: file %q of %d bytes with %d checksums", indexName, f.Name, f.Size, len(f.Sums))
		}
	}
	for i := range ix.Pieces {
		p := &ix.Pieces[i]
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", indexName, err)
		}
		t, ok := ix.Tensors[p.Name]
		if !ok || t.Type != p.Type || !slices.Equal(t.Shape, p.Shape) {
			return nil, fmt.Errorf("%s: a piece of tensor %q is not of its shape and type", indexName, p.Name)
		}
		if p.File < 0 || p.File >= len(ix.Files) || p.At < 0 || p.At > ix.Files[p.File].Size || int64(p.Hi-p.Lo) > (ix.Files[p.File].Size-p.At)/int64(dtypes[p.Type]) {
			return nil, fmt.Errorf("%s: a piece of tensor %q is not in its file", indexName, p.Name)
		}
	}
	return ix, nil
}

// dtypes are the names that safetensors has for types, and their sizes.
var dtypes = map[string]int{"I8": 1, "U8": 1, "I16": 2, "U16": 2, "I32": 4, "U32": 4, "I64": 8, "U64": 8, "F32": 4, "F64": 8,
	"F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1}

func view[T ccl.Number](name string, s []T) (string, []byte, int) {
	var z T
	return name, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(z))), len(s)
}

// look is the safetensors type, the bytes, and the length of data.
func look(data any) (dtype string, b []byte, n int) {
	switch s := data.(type) {
	case []int8:
		return view("I8", s)
	case []uint8:
		return view("U8", s)
	case []int16:
		return view("I16", s)
	case []uint16:
		return view("U16", s)
	case []int32:
		return view("I32", s)
	case []uint32:
		return view("U32", s)
	case []int64:
		return view("I64", s)
	case []uint64:
		return view("U64", s)
	case []int:
		return view("I64", s)
	case []uint:
		return view("U64", s)
	case []float32:
		return view("F32", s)
	case []float64:
		return view("F64", s)
	case []ccl.Float16:
		return view("F16", s)
	case []ccl.BFloat16:
		return view("BF16", s)
	case []ccl.Float8E4M3:
		return view("F8_E4M3", s)
	case []ccl.Float8E5M2:
		return view("F8_E5M2", s)
	}
	return "", nil, 0
}

func bytesOf(data any) []byte { _, b, _ := look(data); return b }

func prod(x []int) int {
	n := 1
	for _, v := range x {
		n *= v
	}
	return n
}

// check makes sure that nothing of p overflows or lies outside.
func (p *piece) check() error {
	size, ok := dtypes[p.Type]
	if !ok {
		return fmt.Errorf("tensor %q has type %q", p.Name, p.Type)
	}
	if p.Name == "" {
		return errors.New("a tensor has no name")
	}
	n := 1
	for _, v := range p.Shape {
		if v < 0 || v > 0 && n > math.MaxInt/size/v {
			return fmt.Errorf("tensor %q has shape %v", p.Name, p.Shape)
		}
		n *= max(v, 1)
	}
	if len(p.Offset) != len(p.Shape) || len(p.Size) != len(p.Shape) {
		return fmt.Errorf("tensor %q: the box %v+%v does not fit the shape %v", p.Name, p.Offset, p.Size, p.Shape)
	}
	for d, v := range p.Shape {
		if p.Offset[d] < 0 || p.Size[d] < 0 || p.Size[d] > v || p.Offset[d] > v-p.Size[d] {
			return fmt.Errorf("tensor %q: the box %v+%v does not fit the shape %v", p.Name, p.Offset, p.Size, p.Shape)
		}
	}
	if p.Lo < 0 || p.Hi < p.Lo || p.Hi > prod(p.Size) {
		return fmt.Errorf("tensor %q: elements %d to %d of a box of %v", p.Name, p.Lo, p.Hi, p.Size)
	}
	return nil
}

func describeAll(ts []Tensor) ([]piece, error) {
	ps := make([]piece, 0, len(ts))
	for i := range ts {
		t := &ts[i]
		dtype, _, n := look(t.Data)
		if dtype == "" {
			return nil, fmt.Errorf("tensor %q: Data is %T, which is no slice of a type of ccl", t.Name, t.Data)
		}
		p := piece{Name: t.Name, Type: dtype, Shape: t.Shape, Offset: t.Offset, Size: t.Size, Lo: t.Lo, Hi: t.Hi}
		if p.Offset == nil && p.Size == nil {
			p.Offset, p.Size = make([]int, len(t.Shape)), t.Shape
		}
		if p.Lo == 0 && p.Hi == 0 && n > 0 {
			p.Hi = prod(p.Size)
		}
		if err := p.check(); err != nil {
			return nil, err
		}
		if p.Hi-p.Lo != n {
			return nil, fmt.Errorf("tensor %q: Data has %d elements, for %d to %d of a box of %v", t.Name, n, p.Lo, p.Hi, p.Size)
		}
		ps = append(ps, p)
	}
	return ps, nil
}
