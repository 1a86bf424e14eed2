package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/train/data"
)

// text is the data: tokens, and the characters that they stand for, if they do.
type text struct {
	tokens []int32
	chars  []byte // by token; nil for a file of tokens
	vocab  int
	train  int // the first so many tokens are for training, the rest for validation
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

// read returns the bytes of the data. Without a file they are sums, which a model can learn to make.
func read(name string) ([]byte, error) {
	if name != "" {
		return os.ReadFile(name)
	}
	var b strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		x, y := r.IntN(1000), r.IntN(1000)
		fmt.Fprintf(&b, "%d + %d = %d\n", x, y, x+y)
	}
	return []byte(b.String()), nil
}

// newText makes tokens of the bytes of a file, for rows of context tokens. vocab is what the flag says.
func newText(name string, raw []byte, context, vocab int) (*text, error) {
	t := &text{}
	if strings.HasSuffix(name, ".bin") {
		if len(raw)%2 != 0 {
			return nil, fmt.Errorf("%s: %d bytes are not a whole number of uint16 tokens", name, len(raw))
		}
		for i := 0; i < len(raw); i += 2 {
			t.tokens = append(t.tokens, int32(binary.LittleEndian.Uint16(raw[i:])))
		}
		if len(t.tokens) > 0 {
			t.vocab = int(slices.Max(t.tokens)) + 1
		}
	} else {
		var number [256]int32
		for _, b := range raw {
			number[b] = 1
		}
		for b, used := range number {
			if used == 1 {
				number[b] = int32(len(t.chars))
				t.chars = append(t.chars, byte(b))
			}
		}
		for _, b := range raw {
			t.tokens = append(t.tokens, number[b])
		}
		t.vocab = len(t.chars)
	}
	if name == "" {
		name = "the data"
	}
	if vocab > 0 {
		if vocab < t.vocab {
			return nil, fmt.Errorf("-vocab %d: %s has %d different tokens", vocab, name, t.vocab)
		}
		t.vocab = vocab
	}
	t.train = len(t.tokens) * 9 / 10
	if rest := len(t.tokens) - t.train; t.train < context+2 || rest < 1 {
		return nil, fmt.Errorf("%s has %s: a -context of %d needs at least %d; give a smaller -context, or more data",
			name, count(len(t.tokens), "token", "s"), context, (context+2)*10/9+1)
	}
	return t, nil
}

// batch is rows lo to hi of the batch of a step: tokens, and what follows each. The same on every layout.
func (t *text) batch(seed uint64, step, rows, lo, hi, context int) (in, out []int32) {
	r := rand.New(rand.NewPCG(data.Seed(seed, 0, 1), uint64(step)))
	for row := range rows {
		at := r.IntN(t.train - context)
		if row >= lo && row < hi {
			in, out = append(in, t.tokens[at:at+context]...), append(out, t.tokens[at+1:at+context+1]...)
		}
	}
	return in, out
}

// unseen is rows lo to hi of those to validate on, spread over the data that is not trained on.
func (t *text) unseen(rows, lo, hi, context int) (in, out []int32) {
	rest := t.tokens[t.train:]
	if len(rest) <= context { // too short for a row: the row before it, too
		rest = t.tokens[len(t.tokens)-context-1:]
	}
	for row := lo; row < hi; row++ {
		at := row * (len(rest) - context - 1) / max(rows-1, 1)
		in, out = append(in, rest[at:at+context]...), append(out, rest[at+1:at+context+1]...)
	}
	return in, out
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
