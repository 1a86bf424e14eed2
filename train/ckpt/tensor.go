package ckpt

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"unicode/utf8"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt/internal/content"
	"github.com/goccl/goccl/train/internal/raw"
)

// Tensor is what one rank holds of a named tensor.
type Tensor struct {
	Name         string
	Shape        []int // of the whole tensor
	Offset, Size []int // the box of it that this rank works on, as tp splits it; nil: all of it
	Lo, Hi       int   // the elements of the box, row-major, that are here, as zero splits them; 0, 0 and Data: all
	// Data is []T of one of the types that ccl names, such as []float32 or []ccl.BFloat16, or []bool;
	// or a ccl.Buf, of memory of a device as well, which On copies to the host and back; or a Stored.
	Data any
	On   Copier
}

// Stored is Data that is not in memory, such as an offload.Column on a disk. Its bytes are saved and
// loaded a few at a time: Save and Load wait until a read or a write of it ends.
type Stored interface {
	io.ReaderAt
	io.WriterAt
	Type() ccl.Type
	Len() int
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

// wholePiece is all of a tensor, whose shape is checked.
func wholePiece(name, dtype string, shape []int) (piece, error) {
	p := piece{Name: name, Type: dtype, Shape: shape, Offset: make([]int, len(shape)), Size: shape}
	if err := p.check(); err != nil {
		return p, err
	}
	p.Hi = prod(shape)
	return p, nil
}

// dtypes are the names that safetensors has for the types that this package moves, and their sizes.
// The last two are for Export alone.
var dtypes = map[string]int{"I8": 1, "U8": 1, "I16": 2, "U16": 2, "I32": 4, "U32": 4, "I64": 8, "U64": 8, "F32": 4,
	"F64": 8,
	"F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "BOOL": 1, "F8_E8M0": 1, "C64": 8}

// dtypeOf names slices of ccl's types, and []bool.
var dtypeOf = map[reflect.Type]string{
	reflect.TypeFor[[]int8](): "I8", reflect.TypeFor[[]uint8](): "U8",
	reflect.TypeFor[[]int16](): "I16", reflect.TypeFor[[]uint16](): "U16",
	reflect.TypeFor[[]int32](): "I32", reflect.TypeFor[[]uint32](): "U32",
	reflect.TypeFor[[]int64](): "I64", reflect.TypeFor[[]uint64](): "U64",
	reflect.TypeFor[[]int](): "I64", reflect.TypeFor[[]uint](): "U64",
	reflect.TypeFor[[]float32](): "F32", reflect.TypeFor[[]float64](): "F64",
	reflect.TypeFor[[]ccl.Float16](): "F16", reflect.TypeFor[[]ccl.BFloat16](): "BF16",
	reflect.TypeFor[[]ccl.Float8E4M3](): "F8_E4M3", reflect.TypeFor[[]ccl.Float8E5M2](): "F8_E5M2",
	reflect.TypeFor[[]bool](): "BOOL",
}

// bytesOf is the memory of data, whose type is in dtypeOf.
func bytesOf(data any) []byte {
	v := reflect.ValueOf(data)
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size()))
}

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
	switch {
	case p.Name == "":
		return errors.New("a tensor has no name")
	case !utf8.ValidString(p.Name):
		return fmt.Errorf("the name of tensor %q is not UTF-8", p.Name)
	case !ok:
		return fmt.Errorf("tensor %q has type %q", p.Name, p.Type)
	}
	n := 1
	for _, v := range p.Shape {
		if v < 0 || v > 0 && n > math.MaxInt/size/v {
			return fmt.Errorf("tensor %q has shape %v", p.Name, p.Shape)
		}
		n *= max(v, 1)
	}
	fits := len(p.Offset) == len(p.Shape) && len(p.Size) == len(p.Shape)
	for d := 0; fits && d < len(p.Shape); d++ {
		fits = p.Offset[d] >= 0 && p.Size[d] >= 0 && p.Size[d] <= p.Shape[d] && p.Offset[d] <= p.Shape[d]-p.Size[d]
	}
	if !fits {
		return fmt.Errorf("tensor %q: the box %v+%v does not fit the shape %v", p.Name, p.Offset, p.Size, p.Shape)
	}
	if p.Lo < 0 || p.Hi < p.Lo || p.Hi > prod(p.Size) {
		return fmt.Errorf("tensor %q: elements %d to %d of a box of %v", p.Name, p.Lo, p.Hi, p.Size)
	}
	return nil
}

// describe is what ts are, and their memory.
func describe(ts []Tensor) (ps []piece, data []content.Content, err error) {
	for i := range ts {
		t := &ts[i]
		if b, is := t.Data.(broken); is {
			return nil, nil, b.error
		}
		dtype, ok := dtypeOf[reflect.TypeOf(t.Data)]
		stored, on := t.Data.(Stored)
		if on {
			dtype, ok = dtypeOf[reflect.TypeOf(raw.Make(stored.Type(), 0))]
		}
		if !ok {
			return nil, nil, fmt.Errorf("tensor %q: Data is %T, which is not a slice of an element type of ccl, nor of bool",
				t.Name, t.Data)
		}
		p := piece{Name: t.Name, Type: dtype, Shape: t.Shape, Offset: t.Offset, Size: t.Size, Lo: t.Lo, Hi: t.Hi}
		if p.Offset == nil && p.Size == nil {
			p.Offset, p.Size = make([]int, len(t.Shape)), t.Shape
		}
		var b content.Content
		if on {
			b = content.Content{On: stored, N: stored.Len() * dtypes[dtype]}
		} else {
			b.B = bytesOf(t.Data)
		}
		n := b.Len() / dtypes[dtype]
		if p.Lo == 0 && p.Hi == 0 && n > 0 {
			p.Hi = prod(p.Size)
		}
		if err := p.check(); err != nil {
			return nil, nil, err
		}
		if p.Hi-p.Lo != n {
			return nil, nil, fmt.Errorf("tensor %q: Data has %d elements, for %d to %d of a box of %v", t.Name, n, p.Lo, p.Hi,
				p.Size)
		}
		ps, data = append(ps, p), append(data, b)
	}
	return ps, data, nil
}
