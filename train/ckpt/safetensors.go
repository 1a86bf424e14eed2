package ckpt

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goccl/goccl/train/ckpt/internal/header"
)

const (
	metadata  = header.Metadata // what no tensor can be named
	maxHeader = 100_000_000     // what safetensors itself accepts
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

// streamed is a header of many entries, each of which is made when it is written: their names are
// not in memory together.
type streamed struct {
	n    int
	at   func(i int) entry
	size int64 // of all of it, with its length and the spaces at its end
	pad  int
}

func newHeader(n int, at func(i int) entry) *streamed {
	h := &streamed{n: n, at: at}
	var length counter
	j := newJSON(&length)
	h.text(j)
	j.Flush()
	h.pad = int(-length & 7)
	h.size = 8 + int64(length) + int64(h.pad)
	return h
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func (h *streamed) text(j *bufio.Writer) {
	j.WriteString(`{"` + metadata + `":{"format":"pt"}`) // which transformers asks for
	at := int64(0)
	for i := range h.n {
		e := h.at(i)
		end := at + int64(prod(e.shape)*dtypes[e.dtype])
		put(j, ",", e.name)
		put(j, ":", field{e.dtype, append([]int{}, e.shape...), [2]int64{at, end}})
		at = end
	}
	j.WriteString("}")
}

func (h *streamed) write(w io.Writer) error {
	j := newJSON(w)
	j.Write(binary.LittleEndian.AppendUint64(nil, uint64(h.size-8)))
	h.text(j)
	j.WriteString(strings.Repeat(" ", h.pad))
	return j.Flush()
}

// parseHeader lists the tensors of a file of unknown origin, of size bytes: pieces has what this
// package moves, others says what the rest is, by name. It takes what safetensors' own reader
// takes, and nothing else: each byte belongs to one tensor.
func parseHeader(r io.ReaderAt, size int64) (pieces []piece, others map[string]other, err error) {
	first := make([]byte, 8)
	if _, err := r.ReadAt(first, 0); err != nil {
		return nil, nil, fmt.Errorf("the header's length is missing: %w", err)
	}
	n := binary.LittleEndian.Uint64(first)
	if n > maxHeader || int64(n) > size-8 {
		return nil, nil, fmt.Errorf("a header of %d bytes in a file of %d; at most %d", n, size, maxHeader)
	}
	text := make([]byte, n)
	if _, err := r.ReadAt(text, 8); err != nil && n > 0 {
		return nil, nil, err
	}
	es, err := header.Parse(text, uint64(size)-8-n)
	if err != nil {
		return nil, nil, fmt.Errorf("the header: %w", err)
	}
	others = map[string]other{}
	for _, name := range slices.Sorted(maps.Keys(es)) {
		e := es[name]
		if p, ok := foreignPiece(name, e); ok {
			p.At = 8 + int64(n) + int64(e.Lo)
			pieces = append(pieces, p)
		} else {
			others[name] = other{e.Type, e.Shape}
		}
	}
	return pieces, others, nil
}

// foreignPiece is the whole of a tensor, if this package can move it.
func foreignPiece(name string, e *header.Entry) (piece, bool) {
	shape := make([]int, len(e.Shape))
	for d, v := range e.Shape {
		if v > math.MaxInt {
			return piece{}, false
		}
		shape[d] = int(v)
	}
	p, err := wholePiece(name, e.Type, shape)
	return p, err == nil
}
