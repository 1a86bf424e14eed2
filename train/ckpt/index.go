package ckpt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

const (
	indexName = "index.json"
	format    = "goccl-ckpt/1"
)

// errFormat is the error of an index of another version of this package.
var errFormat = errors.New("has format")

type tensor struct {
	Type  string `json:"type"`
	Shape []int  `json:"shape"`
}

// other is a tensor of a type or a size that this package does not move.
type other struct {
	Type  string   `json:"type"`
	Shape []uint64 `json:"shape"`
}

// ints is the shape, with what is too large for an int cut off.
func (o other) ints() []int {
	shape := make([]int, len(o.Shape))
	for d, v := range o.Shape {
		shape[d] = int(min(v, math.MaxInt))
	}
	return shape
}

func (o other) String() string { return fmt.Sprintf("%q %v", o.Type, o.Shape) }

type file struct {
	Name string   `json:"name"`
	Size int64    `json:"size"`
	Sums []uint32 `json:"crc32c"` // of each 4 MiB; none for the file of another program
}

// part is what a rank says of its file.
type part struct {
	File   file  `json:"file"`
	Header int64 `json:"header"` // bytes, which the pieces follow
	Own    int64 `json:"own"`    // bytes of the rank's state, which follows the pieces
}

// span is where the state of a rank is in its file.
type span struct {
	At int64 `json:"at"`
	N  int64 `json:"n"`
}

type index struct {
	// of the checkpoints of a directory, in the order in which they were saved
	Sequence int64             `json:"sequence"`
	State    json.RawMessage   `json:"state,omitempty"` // none of another program
	Tensors  map[string]tensor `json:"tensors"`
	Files    []file            `json:"files"`
	Pieces   []piece           `json:"pieces"`
	Own      []span            `json:"own,omitempty"`    // the states of the ranks, by file
	From     string            `json:"from,omitempty"`   // the file of another program that says what there is
	Others   map[string]other  `json:"others,omitempty"` // what this package does not move of it

	of map[string][]piece // Pieces by tensor
}

// name is the file that says what the checkpoint has.
func (ix *index) name(src source) string { return src.path(cmp.Or(ix.From, indexName)) }

// maxIndex is more than an index of a million tensors has.
const maxIndex = 1 << 30

// readerOf is what the index of src is read from, and how much that is: its own, else one of what
// another program has written there, to the file name, if that is not "" instead of its own.
func readerOf(src source, name string) (r io.ReadCloser, size int64, err error) {
	err = fmt.Errorf("open %s: %w", src.path(name), fs.ErrNotExist)
	if name == "" {
		f, size, failed := src.open(indexName, maxIndex)
		if failed == nil {
			return section{io.NewSectionReader(f, 0, size), f}, size, nil
		}
		if err = failed; !errors.Is(err, fs.ErrNotExist) {
			return nil, 0, err
		}
	}
	ix, other := foreign(src, cmp.Or(name, modelName))
	if ix == nil {
		return nil, 0, cmp.Or(other, err)
	}
	text, err := ix.text()
	return io.NopCloser(bytes.NewReader(text)), int64(len(text)), err
}

// section is a file that is read from its beginning on.
type section struct {
	io.Reader
	io.Closer
}

// openIndex is the index of src.
func openIndex(src source) (*index, error) {
	r, size, err := readerOf(src, "")
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return parseIndex(io.LimitReader(r, size))
}

// parseIndex takes text of unknown origin: what it returns refers to nothing outside of what it describes.
func parseIndex(r io.Reader) (*index, error) {
	ix, err := readIndexFrom(r)
	if err != nil {
		return nil, err
	}
	ix.of = map[string][]piece{}
	if ix.Sequence < 0 || ix.Sequence >= maxSequence || ix.From != "" && !plain(ix.From) {
		return nil, fmt.Errorf("%s: sequence %d, from %q", indexName, ix.Sequence, ix.From)
	}
	for _, f := range ix.Files {
		blocks := f.Size/block + min(f.Size%block, 1)
		if f.Size < 0 || f.Sums != nil && int64(len(f.Sums)) != blocks || !plain(f.Name) {
			return nil, fmt.Errorf("%s: file %q of %d bytes with %d checksums", indexName, f.Name, f.Size, len(f.Sums))
		}
	}
	if ix.Own != nil && len(ix.Own) != len(ix.Files) {
		return nil, fmt.Errorf("%s: %d files with the states of %d ranks", indexName, len(ix.Files), len(ix.Own))
	}
	for r, s := range ix.Own {
		if size := ix.Files[r].Size; s.At < 0 || s.N < 0 || s.At > size || s.N > size-s.At {
			return nil, fmt.Errorf("%s: the state of rank %d is not in its file", indexName, r)
		}
	}
	for name, t := range ix.Tensors {
		if _, err := wholePiece(name, t.Type, t.Shape); err != nil {
			return nil, fmt.Errorf("%s: %w", indexName, err)
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
		if p.File < 0 || p.File >= len(ix.Files) || p.At < 0 || p.At > ix.Files[p.File].Size ||
			int64(p.Hi-p.Lo) > (ix.Files[p.File].Size-p.At)/int64(dtypes[p.Type]) {
			return nil, fmt.Errorf("%s: a piece of tensor %q is not in its file", indexName, p.Name)
		}
		ix.of[p.Name] = append(ix.of[p.Name], *p)
	}
	return ix, ix.apart()
}

// apart makes sure that pieces have no byte of a file in common, and that those of a tensor have no
// more elements than it: so what they take is no more than what the files have.
func (ix *index) apart() error {
	for name, ps := range ix.of {
		have := 0
		for i := range ps {
			n := ps[i].Hi - ps[i].Lo
			if n > prod(ix.Tensors[name].Shape)-have {
				return fmt.Errorf("%s: pieces of tensor %q overlap", indexName, name)
			}
			have += n
		}
	}
	order := make([]int, 0, len(ix.Pieces))
	for i := range ix.Pieces {
		if ix.Pieces[i].Lo < ix.Pieces[i].Hi {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		p, q := &ix.Pieces[a], &ix.Pieces[b]
		return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.At, q.At))
	})
	for i := 1; i < len(order); i++ {
		p, q := &ix.Pieces[order[i-1]], &ix.Pieces[order[i]]
		if p.File == q.File && p.At+int64((p.Hi-p.Lo)*dtypes[p.Type]) > q.At {
			return fmt.Errorf("%s: tensors %q and %q overlap in a file", indexName, p.Name, q.Name)
		}
	}
	return nil
}

// plain reports whether name is that of a file in the directory itself, and can be printed.
func plain(name string) bool {
	return name != "" && name == filepath.Base(name) && filepath.IsLocal(name) &&
		!strings.ContainsFunc(name, unicode.IsControl)
}
