// Package text makes training data of text: JSON lines or plain text, in files of any size, encoded
// and packed as rows are asked for, on every rank its own. For supervised fine-tuning the answers
// alone are targets.
//
//	f, err := text.Open(text.Lines, "train.jsonl")        // {"messages": [{"role": "user", "content": ...}, ...]}
//	set, err := text.New(ctx, c, f, text.Chat(tok, tmpl)) // the ranks share the counting
//	p, err := pack.New(set.Lengths, context)
//	items, err := data.Sampler{N: p.Rows(), Rank: rank, Size: size, Seed: 1}.Epoch(epoch, consumed)
//	for consumed, row := range items { // or loader.Prefetch, which encodes ahead
//		err = set.Fill(p, row, &r)
//		train(r.Tokens, r.Targets) // a checkpoint needs epoch and consumed, whatever the number of ranks that load it
//	}
//
// Documents are encoded twice: once to know their lengths, from which it follows what is in which
// row, and again for the row. No rank holds more than the lengths. Where that is too much for each
// start, write the tokens once with package megatron.
package text

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/data/bpe"
	"github.com/goccl/goccl/train/data/chat"
	"github.com/goccl/goccl/train/data/pack"
	"github.com/goccl/goccl/train/internal/same"
)

// Encoder makes tokens of a document. answers says which of them are targets of training; nil: all.
// An empty document has no tokens.
type Encoder func(doc []byte) (tokens []int32, answers []bool, err error)

// Below is encode for a model whose vocabulary has n tokens: a token from n on is an error. A tokenizer
// may have more, and the model would compute something of them.
func Below(n int, encode Encoder) Encoder {
	return func(doc []byte) ([]int32, []bool, error) {
		tokens, answers, err := encode(doc)
		for i, id := range tokens {
			if id < 0 || int64(id) >= int64(n) {
				return nil, nil, fmt.Errorf("token %d is %d: the model has %d", i, id, n)
			}
		}
		return tokens, answers, err
	}
}

// Plain encodes a document as it is, with what the tokenizer's post-processor adds and end behind
// it, unless that is negative or there already.
func Plain(t *bpe.Tokenizer, end int32) Encoder {
	return func(doc []byte) ([]int32, []bool, error) {
		if len(doc) == 0 {
			return nil, nil, nil
		}
		return ended(t.Encode(string(doc), true), end), nil, nil
	}
}

// Field encodes the text that an object of JSON has in a field, such as "text", as Plain does.
func Field(t *bpe.Tokenizer, field string, end int32) Encoder {
	plain := Plain(t, end)
	return func(doc []byte) ([]int32, []bool, error) {
		if len(doc) == 0 {
			return nil, nil, nil
		}
		var o map[string]json.RawMessage
		if err := json.Unmarshal(doc, &o); err != nil {
			return nil, nil, err
		}
		text, err := stringOf(o, field)
		if err != nil {
			return nil, nil, err
		}
		return plain([]byte(text))
	}
}

// stringOf is the string that o has in a field.
func stringOf(o map[string]json.RawMessage, field string) (s string, err error) {
	raw, ok := o[field]
	if !ok {
		return "", fmt.Errorf("there is no field %q", field)
	}
	if string(raw) == "null" {
		return "", fmt.Errorf("field %q is null: want a string", field)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("field %q: %w", field, err)
	}
	return s, nil
}

// Completion encodes {"prompt": ..., "completion": ...}: the two behind each other as one text,
// with what the post-processor adds before it. The completion is the answer, and so is end behind
// it, unless that is negative.
func Completion(t *bpe.Tokenizer, end int32) Encoder {
	return func(doc []byte) ([]int32, []bool, error) {
		if len(doc) == 0 {
			return nil, nil, nil
		}
		var o map[string]json.RawMessage
		if err := json.Unmarshal(doc, &o); err != nil {
			return nil, nil, err
		}
		prompt, err1 := stringOf(o, "prompt")
		completion, err2 := stringOf(o, "completion")
		if err := errors.Join(err1, err2); err != nil {
			return nil, nil, err
		}
		before, _ := t.Added()
		ids, in := t.EncodeSpans(prompt+completion, [][2]int{{len(prompt), len(prompt) + len(completion)}})
		ids = append(append([]int32(nil), before...), ids...)
		in = append(make([]bool, len(before)), in...)
		if end >= 0 {
			ids, in = append(ids, end), append(in, true)
		}
		return ids, in, nil
	}
}

func ended(ids []int32, end int32) []int32 {
	if end >= 0 && (len(ids) == 0 || ids[len(ids)-1] != end) {
		ids = append(ids, end)
	}
	return ids
}

// Chat encodes {"messages": [{"role": ..., "content": ...}, ...]} as a model's chat template says,
// and also {"tools": ...} beside it, and {"chat_template_kwargs": {...}}, which are variables. The
// answers are what the template has between {% generation %} and {% endgeneration %} or, without
// that, the turns of the assistant: see chat.Template.Answers.
func Chat(t *bpe.Tokenizer, tmpl *chat.Template) Encoder {
	return func(doc []byte) ([]int32, []bool, error) {
		if len(doc) == 0 {
			return nil, nil, nil
		}
		var o struct {
			Messages []chat.Message  `json:"messages"`
			Tools    json.RawMessage `json:"tools"`
			Vars     map[string]any  `json:"chat_template_kwargs"`
		}
		if err := json.Unmarshal(doc, &o); err != nil {
			return nil, nil, err
		}
		if len(o.Messages) == 0 {
			return nil, nil, errors.New(`there is no field "messages", or none in it`)
		}
		text, spans, err := tmpl.Answers(o.Messages, &chat.Options{Tools: o.Tools, Vars: o.Vars})
		if err != nil {
			return nil, nil, err
		}
		ids, in := t.EncodeSpans(text, spans)
		return ids, in, nil
	}
}

// Set is documents with their numbers of tokens.
type Set struct {
	// Lengths are those of all documents, for pack.New.
	Lengths []int

	files  *Files
	encode Encoder
}

// New counts the tokens of all documents. It is collective: each rank encodes a part, on all of its
// processors, and all get the lengths. The files and the encoder must be the same on all ranks.
// Where c is nil, this process counts all. If a document cannot be encoded, all ranks return the
// error, which names its file and number.
func New(ctx context.Context, c *ccl.Comm, f *Files, encode Encoder) (*Set, error) {
	if ctx == nil {
		return nil, errors.New("data/text: the context is nil")
	}
	rank, size := 0, 1
	s := &Set{files: f, encode: encode}
	if c != nil {
		rank, size = c.Rank(), c.Size()
		files := fmt.Sprintf("%d documents in files of %s bytes", f.Len(), f.sizes())
		if err := same.Args(ctx, c, "data/text", nil, files); err != nil {
			return nil, err
		}
	}
	lo, hi := data.Range(f.Len(), rank, size)
	mine, bad := s.count(ctx, lo, hi)
	if c == nil {
		s.Lengths = mine
		return s, bad
	}
	if err := same.Args(ctx, c, "data/text", bad); err != nil {
		return nil, err
	}
	counts := make([]int, size)
	for r := range counts {
		lo, hi := data.Range(f.Len(), r, size)
		counts[r] = hi - lo
	}
	s.Lengths = make([]int, f.Len())
	if err := ccl.AllGatherV(ctx, c, s.Lengths, counts, mine); err != nil {
		return nil, fmt.Errorf("data/text: %w", err)
	}
	return s, nil
}

// sizes is how large the files are.
func (f *Files) sizes() string {
	var s []byte
	for i, starts := range f.starts {
		if i > 0 {
			s = append(s, ", "...)
		}
		s = strconv.AppendInt(s, starts[len(starts)-1], 10)
	}
	return string(s)
}

// count counts the tokens of documents lo to hi.
func (s *Set) count(ctx context.Context, lo, hi int) ([]int, error) {
	lengths := make([]int, hi-lo)
	workers := min(runtime.GOMAXPROCS(0), hi-lo)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := lo + w; i < hi; i += workers {
				if errs[w] = ctx.Err(); errs[w] != nil {
					return
				}
				tokens, _, err := s.Doc(i)
				if err != nil {
					errs[w] = err
					return
				}
				lengths[i-lo] = len(tokens)
			}
		}()
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return lengths, nil
}

// Doc returns the tokens of a document, and which of them are answers; nil: all.
func (s *Set) Doc(i int) (tokens []int32, answers []bool, err error) {
	doc, err := s.files.Doc(i)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			tokens, answers, err = nil, nil, fmt.Errorf("panic: %v", p)
		}
		if err != nil {
			err = s.files.wrong(i, err)
		}
	}()
	return s.encode(doc)
}

// Fill sets r to a row of p, which pack.New or pack.Single made of s.Lengths: what is no answer has
// the target pack.Ignored. It may be called by several goroutines at once, each with a Row of its
// own.
func (s *Set) Fill(p *pack.Packing, row int, r *pack.Row) error { return p.FillMasked(row, r, s.Doc) }
