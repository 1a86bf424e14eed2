// Package bpe turns text into tokens and back, as Hugging Face's tokenizers does by a model's
// tokenizer.json: byte-level BPE (GPT-2, Llama 3, Qwen) and SentencePiece's BPE (Llama 2, Mistral).
//
//	t, err := bpe.Read("model/tokenizer.json")
//	ids := t.Encode("Hello world", true) // with what the post-processor adds, such as <s>
//	text := t.Decode(ids, true)          // without special tokens
//
// The tokens are Hugging Face's, to the last one: what this package does not know is an error of
// Read, which names the field, and never another result. It knows
//
//   - BPE with byte_fallback, fuse_unk and ignore_merges (Sennrich et al. 2016)
//   - the normalizers Sequence, Prepend, Replace of a string, NFC, NFD, NFKC and NFKD
//   - the pre-tokenizers Sequence, ByteLevel, Metaspace, and Split by the patterns of GPT-2, Llama 3 and Qwen 2
//   - the post-processors Sequence, ByteLevel and TemplateProcessing, for one text
//   - the decoders Sequence, ByteLevel, Metaspace, Replace, ByteFallback, Fuse and Strip
//   - added tokens with all their flags
//
// A text that is no UTF-8 is taken byte by byte where it is not.
package bpe

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/data/bpe/internal/merge"
	"github.com/goccl/goccl/train/data/bpe/internal/words"
)

// mostFile is how many bytes a tokenizer.json may have.
const mostFile = 1 << 28

// Tokenizer is what a tokenizer.json says. Its methods may be called by several goroutines at once.
type Tokenizer struct {
	tokens []string         // by ID; "" where there is none
	ids    map[string]int32 // of the vocabulary and of added tokens
	model  merge.Model
	steps  steps
	tables tables
	add    template
	dec    decoder
	pool   sync.Pool // of *encoder
}

// tables are the added tokens: those that are looked for in the text, and in what the normalizer
// makes of it.
type tables struct {
	raw, normalized *words.Trie
	special         map[int32]bool
	left            map[string]bool  // what Decode can leave out: as special ones are in the file
	decoded         map[int32]string // what normalized ones decode to
}

// steps are what is done to a text before BPE.
type steps struct {
	normalizers []func(string) string
	grown       int            // by Replaces, at most
	split       words.Splitter // nil: one word
	prefix      string         // of a word that does not begin with it
	prefixFirst bool           // of the first alone
	spaces      string         // what stands for a space; "": itself
	cut         string         // begins a word; "": nothing does
	cutRuns     bool           // a run of cut begins one, not each
}

// template is what the post-processor adds.
type template struct{ before, after []int32 }

// Read reads a tokenizer.json.
func Read(name string) (*Tokenizer, error) {
	b, err := files.Read(name, mostFile)
	if err != nil {
		return nil, fmt.Errorf("bpe: %w", err)
	}
	t, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("bpe: %s: %w", name, err)
	}
	return t, nil
}

// Parse makes a Tokenizer of the bytes of a tokenizer.json.
func Parse(b []byte) (*Tokenizer, error) {
	t, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("bpe: %w", err)
	}
	return t, nil
}

// Len returns the number of IDs: one more than the highest.
func (t *Tokenizer) Len() int { return len(t.tokens) }

// ID returns the ID of a token, such as "<|im_end|>", and whether there is one.
func (t *Tokenizer) ID(token string) (id int32, ok bool) {
	id, ok = t.ids[token]
	return id, ok
}

// Token returns the token of an ID as the file has it, and whether there is one.
func (t *Tokenizer) Token(id int32) (token string, ok bool) {
	if id < 0 || int(id) >= len(t.tokens) {
		return "", false
	}
	token = t.tokens[id]
	return token, token != ""
}

// Special reports whether id is of a special token, which Decode can leave out.
func (t *Tokenizer) Special(id int32) bool { return t.tables.special[id] }

// Encode returns the tokens of a text: with special those that the post-processor adds, too.
func (t *Tokenizer) Encode(text string, special bool) []int32 {
	e := t.encoder()
	defer t.pool.Put(e)
	t.encode(e, text)
	if !special {
		return append([]int32(nil), e.ids...)
	}
	return slices.Concat(t.add.before, e.ids, t.add.after)
}

// Added returns the tokens that the post-processor puts before a text, and behind it. They are the
// Tokenizer's memory.
func (t *Tokenizer) Added() (before, after []int32) { return t.add.before, t.add.after }

// EncodeSpans returns the tokens of a text, without any that the post-processor adds, and for each
// whether it has a byte of one of the spans, which are from, to: the answers in a chat, which a
// model is to learn.
func (t *Tokenizer) EncodeSpans(text string, spans [][2]int) (ids []int32, in []bool) {
	e := &encoder{t: t, spans: spans, marks: []bool{}}
	t.encode(e, text)
	return e.ids, e.marks
}

func (t *Tokenizer) encoder() *encoder {
	e, ok := t.pool.Get().(*encoder)
	if !ok {
		e = &encoder{t: t, known: map[string][]int32{}}
	}
	e.ids = e.ids[:0]
	return e
}

// encoder is where tokens of a text come together.
type encoder struct {
	t     *Tokenizer
	ids   []int32
	known map[string][]int32 // what words were encoded to; nil: none is kept
	work  merge.Workspace
	spans [][2]int // to be marked
	marks []bool   // of ids; nil: not wanted
}

// encode encodes what lies between added tokens: those that are looked for in the text itself, and
// then those that are looked for in what the normalizer makes of the rest.
func (t *Tokenizer) encode(e *encoder, text string) {
	t.tables.raw.Split(text, func(id int32, lo, hi int) {
		spans := clip(e.spans, lo, hi, nil)
		if id >= 0 {
			e.added(id, spans)
			return
		}
		piece := text[lo:hi]
		normal := t.steps.normalize(piece)
		spans = clip(spans, 0, hi-lo, func(x int) int { return len(t.steps.normalize(piece[:x])) })
		t.tables.normalized.Split(normal, func(id int32, from, to int) {
			if part := clip(spans, from, to, nil); id >= 0 {
				e.added(id, part)
			} else {
				e.piece(normal[from:to], lo+from == 0, part)
			}
		})
	})
}

// clip is what spans have of bytes lo to hi, from lo on. at, if there is one, says where a byte is in
// another text.
func clip(spans [][2]int, lo, hi int, at func(int) int) (part [][2]int) {
	for _, s := range spans {
		from, to := max(s[0], lo)-lo, min(s[1], hi)-lo
		if from >= to {
			continue
		}
		if at != nil {
			from, to = at(from), at(to)
		}
		part = append(part, [2]int{from, to})
	}
	return part
}

// added adds an added token, in which there are these parts of spans.
func (e *encoder) added(id int32, part [][2]int) {
	e.ids = append(e.ids, id)
	if e.marks != nil {
		e.marks = append(e.marks, len(part) > 0)
	}
}

// normalize runs the normalizers.
func (s *steps) normalize(text string) string {
	if text == "" {
		return text
	}
	for _, f := range s.normalizers {
		text = f(text)
	}
	return text
}

// prepare is what a pre-tokenizer makes of a text before it cuts it.
func (s *steps) prepare(text string, first bool) string {
	if s.spaces != "" {
		text = strings.ReplaceAll(text, " ", s.spaces)
	}
	if s.prefix != "" && (first || !s.prefixFirst) && !strings.HasPrefix(text, s.prefix) {
		text = s.prefix + text
	}
	return text
}

// piece encodes a text without added tokens, word by word. spans are those in the text.
func (e *encoder) piece(text string, first bool, spans [][2]int) {
	if text == "" {
		return
	}
	s := &e.t.steps
	from := len(e.ids)
	whole := s.prepare(text, first)
	e.work.Lens, e.work.Skipped = e.work.Lens[:0], 0
	for rest := whole; rest != ""; {
		n := len(rest)
		if s.split != nil {
			n = s.split(rest)
		}
		if s.cut != "" {
			n = words.Next(rest[:n], s.cut, s.cutRuns)
		}
		e.word(rest[:n])
		rest = rest[n:]
	}
	if e.marks == nil {
		return
	}
	spans = clip(spans, 0, len(text), func(x int) int {
		if x == 0 { // what stands before the text is of its first character
			return 0
		}
		return len(s.prepare(text[:x], first))
	})
	pos := 0
	for i := range e.ids[from:] {
		n := e.work.Lens[i]
		e.marks = append(e.marks, slices.ContainsFunc(spans, func(x [2]int) bool { return x[0] < pos+n && pos < x[1] }))
		pos += n
	}
}

// mostKnown and mostLength bound the words that an encoder keeps.
const mostKnown, mostLength = 1 << 15, 64

// word encodes a word.
func (e *encoder) word(w string) {
	if e.known == nil {
		e.ids = e.t.model.Word(&e.work, e.ids, w)
		return
	}
	if ids, ok := e.known[w]; ok {
		e.ids = append(e.ids, ids...)
		return
	}
	from := len(e.ids)
	e.work.Lens, e.work.Skipped = e.work.Lens[:0], 0
	e.ids = e.t.model.Word(&e.work, e.ids, w)
	if len(w) > mostLength {
		return
	}
	if len(e.known) == mostKnown {
		clear(e.known)
	}
	e.known[strings.Clone(w)] = append([]int32(nil), e.ids[from:]...)
}
