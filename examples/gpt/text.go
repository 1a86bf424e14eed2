package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/data"
)

// text is the data: tokens, and the characters that they stand for, if they do.
type text struct {
	raw       []byte // a byte for each token, or two
	wide      bool   // two, uint16 in little-endian order
	n         int    // tokens
	number    [256]int32
	chars     []byte // by token; nil for a file of tokens
	vocab     int
	different int    // tokens that the data have
	train     int    // the first so many tokens are for training, the rest for validation
	sum       uint32 // of the file
}

// source is the data's file, or where the Go distribution has a book; "" if neither.
func source(name string) string {
	if name != "" {
		return name
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil { // no Go here
		return ""
	}
	name = filepath.Join(strings.TrimSpace(string(root)), "src", "testdata", "Isaac.Newton-Opticks.txt")
	if _, err := os.Stat(name); err != nil {
		return ""
	}
	return name
}

// mostData is how many bytes the data may have.
const mostData = 1 << 36

// read returns the bytes of the data. Without a file they are sums, which a model can learn to make.
func read(name string) ([]byte, error) {
	if name != "" {
		return files.Read(name, mostData)
	}
	var b strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		x, y := r.IntN(1000), r.IntN(1000)
		fmt.Fprintf(&b, "%d + %d = %d\n", x, y, x+y)
	}
	return []byte(b.String()), nil
}

// newText makes tokens of the bytes of a file, for rows of context tokens. vocab is what the flag
// says. It keeps raw: tokens are made as rows need them, and take no memory of their own.
func newText(name string, raw []byte, context, vocab int) (*text, error) {
	t := &text{raw: raw, sum: crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli))}
	if strings.HasSuffix(name, ".bin") {
		if err := t.binary(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	} else {
		var used [256]bool
		for _, b := range raw {
			used[b] = true
		}
		for b, is := range used {
			if is {
				t.number[b] = int32(len(t.chars))
				t.chars = append(t.chars, byte(b))
			}
		}
		t.n, t.vocab, t.different = len(raw), len(t.chars), len(t.chars)
	}
	if name == "" {
		name = "the data"
	}
	if vocab > 0 {
		if vocab < t.vocab {
			return nil, fmt.Errorf("-vocab %d: %s needs %d", vocab, name, t.vocab)
		}
		t.vocab = vocab
	}
	t.train = t.n * 9 / 10
	if rest := t.n - t.train; t.train < context+2 || rest < 1 {
		return nil, fmt.Errorf("%s has %s: a -context of %d needs at least %d; give a smaller -context, or more data",
			name, count(t.n, "token", "s"), context, (context+2)*10/9+1)
	}
	return t, nil
}

// A file of llm.c begins with 256 numbers of 32 bits: this one, the version, the number of tokens, and zeros.
const (
	llmcMagic  = 20240520
	llmcHeader = 1024
)

// binary reads a file of uint16 tokens, nanoGPT's or llm.c's, and refuses one that is something else.
func (t *text) binary() error {
	tokens := t.raw
	switch le := binary.LittleEndian; {
	case bytes.HasPrefix(tokens, []byte("\x93NUMPY")):
		return errors.New(`this is an array that numpy.save has written: write its tokens alone, by a.astype("<u2").tofile(NAME)`)
	case len(tokens) >= llmcHeader && le.Uint32(tokens) == llmcMagic:
		if n := le.Uint32(tokens[8:]); le.Uint32(tokens[4:]) != 1 || int(n) != (len(tokens)-llmcHeader)/2 {
			return fmt.Errorf("this has the header of llm.c, version %d with %d tokens, and %d bytes behind it: only whole files of version 1 are read",
				le.Uint32(tokens[4:]), n, len(tokens)-llmcHeader)
		}
		tokens = tokens[llmcHeader:]
	}
	if len(tokens)%2 != 0 {
		return fmt.Errorf("%d bytes are not a whole number of uint16 tokens", len(tokens))
	}
	t.raw, t.wide, t.n = tokens, true, len(tokens)/2
	var used [1 << 16]bool
	most, swapped := 0, 0
	var has [2]bool // whether there are tokens other than 0 at even places, and at odd ones
	for i := range t.n {
		v := binary.LittleEndian.Uint16(tokens[2*i:])
		used[v] = true
		most, swapped = max(most, int(v)), max(swapped, int(v>>8|v<<8))
		has[i%2] = has[i%2] || v != 0
	}
	for _, is := range used {
		if is {
			t.different++
		}
	}
	const enough = 64 // tokens to judge by
	switch {
	case t.n >= enough && t.different > 1 && has[0] != has[1]:
		return errors.New(`each second one of its uint16 tokens is 0, as in a file of int32 or int64: write them by a.astype("<u2").tofile(NAME)`)
	case t.n >= enough && t.different >= enough/2 && swapped < most/5*4: // else the low bytes are the larger ones
		return errors.New(`its tokens look like big-endian ones: write them by a.astype("<u2").tofile(NAME)`)
	case t.n > 0:
		t.vocab = most + 1
	}
	return nil
}

// rows adds tokens at to at+n to a list.
func (t *text) rows(list []int32, at, n int) []int32 {
	for i := at; i < at+n; i++ {
		if t.wide {
			list = append(list, int32(binary.LittleEndian.Uint16(t.raw[2*i:])))
		} else {
			list = append(list, t.number[t.raw[i]])
		}
	}
	return list
}

// batch is rows lo to hi of the batch of a step: tokens, and what follows each. The same on every layout.
func (t *text) batch(seed uint64, step, rows, lo, hi, context int) (in, out []int32) {
	r := rand.New(rand.NewPCG(data.Seed(seed, 0, 1), uint64(step)))
	for row := range rows {
		at := r.IntN(t.train - context)
		if row >= lo && row < hi {
			in, out = t.rows(in, at, context), t.rows(out, at+1, context)
		}
	}
	return in, out
}

// unseen is rows lo to hi of those to validate on, spread over the data that is not trained on.
func (t *text) unseen(rows, lo, hi, context int) (in, out []int32) {
	first := t.train
	if t.n-first <= context { // too short for a row: the row before it, too
		first = t.n - context - 1
	}
	for row := lo; row < hi; row++ {
		at := first + row*(t.n-first-context-1)/max(rows-1, 1)
		in, out = t.rows(in, at, context), t.rows(out, at+1, context)
	}
	return in, out
}

// known is text without data, of a model that knows characters by number.
func known(chars []byte, vocab int) *text {
	t := &text{chars: chars, vocab: vocab}
	for k, b := range chars {
		t.number[b] = int32(k)
	}
	return t
}

// encode makes tokens of a text.
func (t *text) encode(s string) (tokens []int32, err error) {
	if t.chars == nil {
		return nil, fmt.Errorf("-sample: the data are tokens, and this program does not know their text")
	}
	for i := range len(s) {
		k := slices.Index(t.chars, s[i])
		if k < 0 {
			return nil, fmt.Errorf("-sample: %q is not in the data", s[i])
		}
		tokens = append(tokens, int32(k))
	}
	return tokens, nil
}
