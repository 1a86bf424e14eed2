// Package megatron reads and writes Megatron-LM's indexed datasets: tokens in NAME.bin, and in
// NAME.idx where each sequence is. So a text is encoded once, here or by Megatron's
// preprocess_data.py, for each start of a run.
//
//	w, err := megatron.Create("train", tok.Len())
//	err = w.Add(tokens) // a document
//	err = w.Close()
//
//	d, err := megatron.Open("train")
//	p, err := pack.New(d.Lengths(), context)
//	err = p.Fill(row, &r, d.Sequence)
//
// The index is little-endian: "MMIDIDX\0\0", version 1 in 8 bytes, the type's code in one, the
// numbers of sequences and of document bounds in 8 each, then the lengths of sequences in 4 bytes,
// their places in NAME.bin and the first sequence of each document (and how many there are) in 8,
// and for some a byte a sequence, which is not read.
package megatron

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/goccl/goccl/internal/files"
)

const (
	magic   = "MMIDIDX\x00\x00"
	version = 1
	header  = len(magic) + 8 + 1 + 8 + 8
)

// kind is a type of tokens, as a numpy.dtype.
type kind struct {
	size     int
	lo, hi   int64
	readable bool
}

// kinds are the types by their code. 6 and 7 are floats.
var kinds = map[byte]kind{1: {1, 0, math.MaxUint8, true}, 2: {1, math.MinInt8, math.MaxInt8, true},
	3: {2, math.MinInt16, math.MaxInt16, true}, 4: {4, math.MinInt32, math.MaxInt32, true},
	5: {8, math.MinInt64, math.MaxInt64, true}, 6: {size: 8}, 7: {size: 4}, 8: {2, 0, math.MaxUint16, true}}

const (
	codeInt32  = 4
	codeUint16 = 8
)

// mostNarrow is from how many tokens on Megatron takes 4 bytes for each, and not 2.
const mostNarrow = 65500

// Dataset is an indexed dataset that is open. A NAME.bin that is changed meanwhile is an error. Its
// methods may be called by several goroutines at once.
type Dataset struct {
	name    string
	kind    kind
	bin     *os.File
	info    os.FileInfo // of bin, as it was at first
	lengths []int
	places  []int64
	first   []int
}

// Open opens NAME.bin and NAME.idx, and checks the index.
func Open(name string) (*Dataset, error) {
	d := &Dataset{name: name}
	bin, size, err := files.Open(name+".bin", math.MaxInt64)
	if err != nil {
		return nil, fmt.Errorf("data/megatron: %w", err)
	}
	d.bin = bin
	idx, bytes, err := files.Open(name+".idx", math.MaxInt64)
	if err == nil {
		d.info, err = bin.Stat()
		err = cmp.Or(err, d.read(bufio.NewReaderSize(idx, 1<<20), bytes, size))
		idx.Close()
	}
	if err != nil {
		bin.Close()
		return nil, fmt.Errorf("data/megatron: %s.idx: %w", name, err)
	}
	return d, nil
}

// read reads an index of so many bytes, for tokens in size bytes.
func (d *Dataset) read(r io.Reader, bytes, size int64) error {
	head := make([]byte, header)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:len(magic)]) != magic {
		return errors.New("it does not begin as an index does")
	}
	rest := head[len(magic):]
	le := binary.LittleEndian
	code, n, bounds := rest[8], le.Uint64(rest[9:]), le.Uint64(rest[17:])
	ok := false
	d.kind, ok = kinds[code]
	left := uint64(bytes - int64(header))
	switch v := le.Uint64(rest); {
	case v != version:
		return fmt.Errorf("it is of version %d, and 1 is read", v)
	case !ok || !d.kind.readable:
		return fmt.Errorf("its type has the code %d: tokens must be integers", code)
	case n > left/12 || bounds > (left-12*n)/8:
		return fmt.Errorf("it says that there are %d sequences and %d bounds of documents, which its %d bytes have no room for",
			n, bounds, bytes)
	case bounds == 0:
		return errors.New("it has no bounds of documents, and the first is always there")
	}
	d.lengths, d.places, d.first = make([]int, n), make([]int64, n), make([]int, bounds)
	if err := each(r, d.lengths, 4, func(b []byte) int { return int(int32(le.Uint32(b))) }); err != nil {
		return err
	}
	if err := each(r, d.places, 8, func(b []byte) int64 { return int64(le.Uint64(b)) }); err != nil {
		return err
	}
	if err := each(r, d.first, 8, func(b []byte) int { return int(le.Uint64(b)) }); err != nil {
		return err
	}
	for i, n := range d.lengths {
		if at := d.places[i]; n < 0 || at < 0 || at > size || int64(n) > (size-at)/int64(d.kind.size) {
			return fmt.Errorf("sequence %d has %d tokens at byte %d, and %s.bin has %d bytes", i, n, at, d.name, size)
		}
	}
	for i, s := range d.first {
		if i == 0 && s != 0 || i > 0 && s < d.first[i-1] || i == len(d.first)-1 && s != len(d.lengths) {
			return fmt.Errorf("document %d begins with sequence %d of %d", i, s, len(d.lengths))
		}
	}
	return nil
}

// each reads numbers of so many bytes.
func each[T any](r io.Reader, to []T, size int, decode func([]byte) T) error {
	b := make([]byte, size)
	for i := range to {
		if _, err := io.ReadFull(r, b); err != nil {
			return fmt.Errorf("it ends early: %w", err)
		}
		to[i] = decode(b)
	}
	return nil
}

// Lengths returns the number of tokens of each sequence. It is the Dataset's memory.
func (d *Dataset) Lengths() []int { return d.lengths }

// Documents returns the first sequence of each document, and behind that the number of sequences.
// It is the Dataset's memory.
func (d *Dataset) Documents() []int { return d.first }

// Sequence returns the tokens of a sequence.
func (d *Dataset) Sequence(i int) ([]int32, error) {
	if i < 0 || i >= len(d.lengths) {
		return nil, fmt.Errorf("data/megatron: %s: sequence %d of %d", d.name, i, len(d.lengths))
	}
	n, size := d.lengths[i], d.kind.size
	b := make([]byte, n*size)
	_, err := d.bin.ReadAt(b, d.places[i])
	if err = cmp.Or(files.Unchanged(d.bin, d.info), err); err != nil { // behind the reading: what was read is as it was
		return nil, fmt.Errorf("data/megatron: %s.bin: sequence %d: %w", d.name, i, err)
	}
	tokens := make([]int32, n)
	for k := range tokens {
		x := d.kind.decode(b[k*size:])
		if x < math.MinInt32 || x > math.MaxInt32 {
			return nil, fmt.Errorf("data/megatron: %s.bin: sequence %d has the token %d", d.name, i, x)
		}
		tokens[k] = int32(x)
	}
	return tokens, nil
}

// decode is the number that b begins with.
func (k kind) decode(b []byte) int64 {
	le := binary.LittleEndian
	switch signed := k.lo < 0; k.size {
	case 1:
		if signed {
			return int64(int8(b[0]))
		}
		return int64(b[0])
	case 2:
		if signed {
			return int64(int16(le.Uint16(b)))
		}
		return int64(le.Uint16(b))
	case 4:
		return int64(int32(le.Uint32(b)))
	}
	return int64(le.Uint64(b))
}

// Close closes the files.
func (d *Dataset) Close() error { return d.bin.Close() }

// Writer writes an indexed dataset.
type Writer struct {
	name    string
	code    byte
	bin     *os.File
	out     *bufio.Writer
	lengths []int32
	first   []int64
	err     error
}

// Create makes NAME.bin, or empties it, for tokens below vocab: of 2 bytes if there are few, as
// Megatron decides it. Close writes NAME.idx; what is there under that name is removed now.
func Create(name string, vocab int) (*Writer, error) {
	w := &Writer{name: name, code: codeInt32, first: []int64{0}}
	if vocab < mostNarrow {
		w.code = codeUint16
	}
	if err := os.Remove(name + ".idx"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("data/megatron: %w", err)
	}
	bin, err := files.Create(name + ".bin")
	if err != nil {
		return nil, fmt.Errorf("data/megatron: %w", err)
	}
	w.bin, w.out = bin, bufio.NewWriterSize(bin, 1<<20)
	return w, nil
}

// Add adds a document, of one or more sequences. After an error it fails.
func (w *Writer) Add(sequences ...[]int32) error {
	if w.err != nil {
		return w.err
	}
	k := kinds[w.code]
	var b [4]byte
	for _, tokens := range sequences {
		if len(tokens) > math.MaxInt32 {
			return w.fail(fmt.Errorf("a sequence of %d tokens", len(tokens)))
		}
		for _, x := range tokens {
			if x < 0 || int64(x) > k.hi {
				return w.fail(fmt.Errorf("the token %d does not fit into %d bytes", x, k.size))
			}
			binary.LittleEndian.PutUint32(b[:], uint32(x))
			if _, err := w.out.Write(b[:k.size]); err != nil {
				return w.fail(err)
			}
		}
		w.lengths = append(w.lengths, int32(len(tokens)))
	}
	w.first = append(w.first, int64(len(w.lengths)))
	return nil
}

func (w *Writer) fail(err error) error {
	w.err = fmt.Errorf("data/megatron: %s.bin: %w", w.name, err)
	return w.err
}

// Close ends NAME.bin and writes NAME.idx. After an error of Add it writes none.
func (w *Writer) Close() error {
	err := errors.Join(w.out.Flush(), w.bin.Close())
	if w.err != nil {
		return w.err
	}
	if err != nil {
		return w.fail(err)
	}
	idx, err := files.Create(w.name + ".idx")
	if err == nil {
		out := bufio.NewWriterSize(idx, 1<<20)
		err = errors.Join(w.index(out), out.Flush(), idx.Close())
	}
	if err != nil {
		return fmt.Errorf("data/megatron: %w", err)
	}
	w.err = errors.New("data/megatron: the Writer is closed")
	return nil
}

// index writes the index.
func (w *Writer) index(out io.Writer) error {
	places := make([]int64, len(w.lengths))
	at := int64(0)
	for i, n := range w.lengths {
		places[i] = at
		at += int64(n) * int64(kinds[w.code].size)
	}
	for _, x := range []any{[]byte(magic), uint64(version), w.code, uint64(len(w.lengths)), uint64(len(w.first)),
		w.lengths, places, w.first} {
		if err := binary.Write(out, binary.LittleEndian, x); err != nil {
			return err
		}
	}
	return nil
}
