package bpe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccl/goccl/train/data/bpe/internal/chars"
	"github.com/goccl/goccl/train/data/bpe/internal/merge"
	"github.com/goccl/goccl/train/data/bpe/internal/words"
)

// file is a tokenizer.json.
type file struct {
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	AddedTokens   []words.Token   `json:"added_tokens"`
	Normalizer    *step           `json:"normalizer"`
	PreTokenizer  *step           `json:"pre_tokenizer"`
	PostProcessor *step           `json:"post_processor"`
	Decoder       *step           `json:"decoder"`
	Model         *struct {
		Type       string           `json:"type"`
		Dropout    *float64         `json:"dropout"`
		Unk        *string          `json:"unk_token"`
		Prefix     *string          `json:"continuing_subword_prefix"`
		Suffix     *string          `json:"end_of_word_suffix"`
		Fuse       bool             `json:"fuse_unk"`
		ByteBack   bool             `json:"byte_fallback"`
		WholeWords bool             `json:"ignore_merges"`
		Vocab      map[string]int32 `json:"vocab"`
		Merges     json.RawMessage  `json:"merges"`
	} `json:"model"`
}

// step is a normalizer, a pre-tokenizer, a post-processor or a decoder: its type, and the fields of
// all of them.
type step struct {
	Type           string `json:"type"`
	Normalizers    []step `json:"normalizers"`
	Pretokenizers  []step `json:"pretokenizers"`
	Processors     []step `json:"processors"`
	Decoders       []step `json:"decoders"`
	Prepend        string `json:"prepend"`
	Content        string `json:"content"`
	Replacement    string `json:"replacement"`
	PrependScheme  string `json:"prepend_scheme"`
	AddPrefixSpace *bool  `json:"add_prefix_space"`
	UseRegex       *bool  `json:"use_regex"`
	Split          *bool  `json:"split"`
	Behavior       string `json:"behavior"`
	Invert         bool   `json:"invert"`
	Start          int    `json:"start"`
	Stop           int    `json:"stop"`
	Pattern        struct{ String, Regex *string }
	Single         []struct {
		SpecialToken *struct{ ID string }
		Sequence     *struct{ ID string }
	} `json:"single"`
	SpecialTokens map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
}

// parse reads and checks all of a file.
func parse(b []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, err
	}
	if !utf8.Valid(b) {
		return nil, errors.New("the file is no UTF-8")
	}
	t := &Tokenizer{ids: map[string]int32{}}
	switch null := []byte("null"); {
	case f.Model == nil:
		return nil, errors.New("model is missing")
	case f.Truncation != nil && !bytes.Equal(f.Truncation, null):
		return nil, errors.New("truncation is set: cut the tokens yourself, and set it to null")
	case f.Padding != nil && !bytes.Equal(f.Padding, null):
		return nil, errors.New("padding is set: pad the tokens yourself, and set it to null")
	}
	for _, err := range []error{
		within("normalizer", t.steps.addNormalizer(f.Normalizer)),
		within("pre_tokenizer", t.addPreTokenizer(f.PreTokenizer)),
		within("decoder", t.dec.add(f.Decoder)),
		within("model", t.addModel(&f)),
		within("added_tokens", t.addTokens(f.AddedTokens)),
		within("post_processor", t.addPostProcessor(f.PostProcessor)),
	} {
		if err != nil {
			return nil, err
		}
	}
	t.cutAtSpaces()
	return t, nil
}

// within says in which field an error is.
func within(field string, err error) error {
	switch {
	case err == nil:
		return nil
	case strings.HasPrefix(err.Error(), "["):
		return fmt.Errorf("%s%w", field, err)
	}
	return fmt.Errorf("%s.%w", field, err)
}

// each calls f for the parts of a Sequence.
func each(field string, list []step, f func(*step) error) error {
	for i := range list {
		if err := f(&list[i]); err != nil {
			return within(fmt.Sprintf("%s[%d]", field, i), err)
		}
	}
	return nil
}

// unknown is the error about a type that is none of those known.
func unknown(s *step, known string) error {
	return fmt.Errorf("type %q is not supported; these are: %s", s.Type, known)
}

func (s *steps) addNormalizer(n *step) error {
	if n == nil {
		return nil
	}
	form, isForm := chars.Forms[n.Type]
	switch {
	case n.Type == "Sequence":
		return each("normalizers", n.Normalizers, s.addNormalizer)
	case n.Type == "Prepend":
		s.normalizers = append(s.normalizers, func(text string) string {
			if text == "" { // which another has made of it
				return text
			}
			return n.Prepend + text
		})
	case n.Type == "Replace" && (n.Pattern.String == nil || *n.Pattern.String == ""):
		return errors.New("pattern must be a String: no Regex is supported")
	case n.Type == "Replace":
		if err := chars.Grow(&s.grown, *n.Pattern.String, n.Content); err != nil {
			return err
		}
		s.normalizers = append(s.normalizers, func(text string) string {
			return strings.ReplaceAll(text, *n.Pattern.String, n.Content)
		})
	case isForm:
		s.normalizers = append(s.normalizers, form)
	default:
		return unknown(n, "Sequence, Prepend, Replace, NFC, NFD, NFKC, NFKD")
	}
	return nil
}

func (t *Tokenizer) addPreTokenizer(p *step) error {
	if p == nil {
		return nil
	}
	s := &t.steps
	switch {
	case p.Type == "Sequence":
		return each("pretokenizers", p.Pretokenizers, t.addPreTokenizer)
	case t.model.Level || s.spaces != "":
		return fmt.Errorf("type %q stands behind ByteLevel or Metaspace, which must be the last", p.Type)
	case p.Type == "ByteLevel":
		t.model.Level = true
		if p.AddPrefixSpace == nil || *p.AddPrefixSpace {
			if s.split != nil {
				return errors.New("add_prefix_space is true behind a Split: that is not supported")
			}
			s.prefix = " "
		}
		if p.UseRegex == nil || *p.UseRegex {
			if s.split != nil {
				return errors.New("use_regex is true behind a Split: that is not supported")
			}
			s.split = words.GPT2
		}
	case p.Type == "Split":
		if s.split != nil {
			return errors.New("type \"Split\" comes twice: that is not supported")
		}
		if p.Pattern.Regex == nil || words.Patterns[*p.Pattern.Regex] == nil {
			pattern, _ := json.Marshal(p.Pattern)
			return fmt.Errorf("pattern %.300s is none of the %d known: those of GPT-2, Llama 3 and Qwen 2",
				pattern, len(words.Patterns))
		}
		if (p.Behavior != "Isolated" || p.Invert) && (p.Behavior != "Removed" || !p.Invert) {
			return fmt.Errorf("behavior %q, with invert %v, is not supported: Isolated is, and Removed with invert",
				p.Behavior, p.Invert)
		}
		s.split = words.Patterns[*p.Pattern.Regex]
	case p.Type == "Metaspace":
		if s.split != nil {
			return errors.New("type \"Metaspace\" stands behind a Split: that is not supported")
		}
		return s.addMetaspace(p)
	default:
		return unknown(p, "Sequence, ByteLevel, Split, Metaspace")
	}
	return nil
}

// scheme is the prepend_scheme of a Metaspace, which older files call add_prefix_space.
func (p *step) scheme() string {
	switch {
	case p.PrependScheme != "":
		return p.PrependScheme
	case p.AddPrefixSpace != nil && !*p.AddPrefixSpace:
		return "never"
	}
	return "always"
}

func (s *steps) addMetaspace(p *step) error {
	if utf8.RuneCountInString(p.Replacement) != 1 {
		return fmt.Errorf("replacement is %q, and must be one character", p.Replacement)
	}
	s.spaces = p.Replacement
	switch scheme := p.scheme(); scheme {
	case "always", "first":
		if s.prefix, s.prefixFirst = s.spaces, scheme == "first"; s.prefixFirst && s.grown > 0 {
			return errors.New("prepend_scheme is first behind a Replace, after which another piece may be the first: not supported")
		}
	case "never":
	default:
		return fmt.Errorf("prepend_scheme %q is not supported: always, first and never are", scheme)
	}
	if p.Split == nil || *p.Split {
		s.cut = s.spaces
	}
	return nil
}

func (d *decoder) add(s *step) error {
	if s == nil {
		return nil
	}
	if s.Type == "Sequence" {
		return each("decoders", s.Decoders, d.add)
	}
	if d.kind != byJoining && (d.kind != byReplace || s.Type == "ByteLevel" || s.Type == "Metaspace") || d.strips > 0 {
		return fmt.Errorf("type %q does not go with what stands before it", s.Type)
	}
	d.kind = byReplace
	switch {
	case s.Type == "ByteLevel":
		d.kind = byBytes
	case s.Type == "Metaspace":
		if utf8.RuneCountInString(s.Replacement) != 1 {
			return fmt.Errorf("replacement is %q, and must be one character", s.Replacement)
		}
		d.kind, d.space, d.dropFirst = byDropping, s.Replacement, s.scheme() != "never"
	case s.Type == "Replace" && (s.Pattern.String == nil || *s.Pattern.String == "" || d.back || d.fused):
		return errors.New("pattern must be a String, and the Replace come before ByteFallback and Fuse")
	case s.Type == "Replace":
		if err := chars.Grow(&d.grown, *s.Pattern.String, s.Content); err != nil {
			return err
		}
		d.replace = append(d.replace, [2]string{*s.Pattern.String, s.Content})
	case s.Type == "ByteFallback":
		d.back = true
	case s.Type == "Fuse":
		d.fused = true
	case s.Type == "Strip" && (!d.fused || s.Stop != 0 || s.Start < 0 || utf8.RuneCountInString(s.Content) != 1):
		return errors.New("start and content must be of one character, stop 0, and the Strip come after Fuse")
	case s.Type == "Strip":
		d.strip, d.strips = s.Content, s.Start
	default:
		return unknown(s, "Sequence, ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip")
	}
	return nil
}

// mostGap bounds the IDs that no token has, and so the memory that a file can ask for.
const mostGap = 1 << 16

func (t *Tokenizer) addModel(f *file) error {
	m, d := &t.model, f.Model
	switch {
	case d.Type != "BPE" && (d.Type != "" || d.Merges == nil):
		return fmt.Errorf("type %q is not supported; this is: BPE", d.Type)
	case d.Dropout != nil && *d.Dropout != 0:
		return errors.New("dropout is set: that is not supported")
	case d.Prefix != nil && *d.Prefix != "":
		return errors.New("continuing_subword_prefix is set: that is not supported")
	case d.Suffix != nil && *d.Suffix != "":
		return errors.New("end_of_word_suffix is set: that is not supported")
	case m.Level && d.ByteBack:
		return errors.New("byte_fallback is set, and pre_tokenizer is ByteLevel: that is not supported")
	}
	m.Unk, m.Fuse, m.ByteBack, m.Whole = -1, d.Fuse, d.ByteBack, d.WholeWords
	for token, id := range d.Vocab {
		if err := t.put(token, id, len(d.Vocab)+len(f.AddedTokens)); err != nil {
			return within("vocab", err)
		}
	}
	if d.Unk != nil {
		id, ok := t.ids[*d.Unk]
		if !ok {
			return fmt.Errorf("unk_token %q is not in vocab", *d.Unk)
		}
		m.Unk = id
	}
	m.Index(d.Vocab)
	return t.addMerges(d.Merges)
}

// put gives a token an ID that no other has.
func (t *Tokenizer) put(token string, id int32, count int) error {
	switch {
	case id < 0 || int(id) >= 2*count+mostGap:
		return fmt.Errorf("%q has ID %d, with %d tokens", token, id, count)
	case token == "":
		return fmt.Errorf("ID %d has an empty token", id)
	}
	if int(id) >= len(t.tokens) {
		t.tokens = append(t.tokens, make([]string, int(id)+1-len(t.tokens))...)
	}
	if other := t.tokens[id]; other != "" {
		return fmt.Errorf("%q has ID %d, and so has %q", max(token, other), id, min(token, other))
	}
	t.tokens[id], t.ids[token] = token, id
	return nil
}

func (t *Tokenizer) addMerges(raw json.RawMessage) error {
	if raw == nil {
		return errors.New("merges is missing")
	}
	list, err := merge.Read(raw)
	if err != nil {
		return fmt.Errorf("merges: %w", err)
	}
	t.model.Reserve(len(list))
	for rank, two := range list {
		if len(two) != 2 {
			return fmt.Errorf("merges[%d] is %q, and must be two tokens", rank, two)
		}
		a, okA := t.ids[two[0]]
		b, okB := t.ids[two[1]]
		both, ok := t.ids[two[0]+two[1]]
		if !okA || !okB || !ok {
			return fmt.Errorf("merges[%d] is %q: they, or what they make together, are not in vocab", rank, two)
		}
		t.model.Add(a, b, both)
	}
	return nil
}

// mostAdded is how many bytes all added tokens may have: a node of a Trie takes 200 for each.
const mostAdded = 1 << 22

// addTokens adds added tokens. Hugging Face gives those that vocab has the ID there, and others the
// next one.
func (t *Tokenizer) addTokens(list []words.Token) error {
	t.tables = tables{words.NewTrie(), words.NewTrie(), map[int32]bool{}, map[string]bool{}, map[int32]string{}}
	vocab := len(t.ids)
	next, size, as := int32(vocab), 0, map[string]string{}
	for i, a := range list {
		if a.Content == "" {
			return fmt.Errorf("[%d].content is empty", i)
		}
		if size += len(a.Content); size > mostAdded {
			return fmt.Errorf("[%d].content has %d bytes: all together %d are the most", i, len(a.Content), mostAdded)
		}
		id, known := t.ids[a.Content]
		if !known {
			id = next
		}
		if a.ID != id {
			return fmt.Errorf("[%d].id of %q is %d, and follows to be %d from vocab and the tokens before it",
				i, a.Content, a.ID, id)
		}
		if !known {
			if err := t.put(a.Content, id, vocab+len(list)); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
		if next = max(next, id+1); int(id) < vocab {
			next = max(next, int32(vocab))
		}
		if a.Special {
			t.tables.special[id], t.tables.left[a.Content] = true, true
		}
		if !a.Normalized {
			t.tables.raw.Insert(a.Content, a)
			continue
		}
		looks := t.steps.normalize(a.Content)
		if other, twice := as[looks]; looks == "" || twice && other != a.Content {
			return fmt.Errorf("[%d].content is %q, for which normalized text has %q, as for %q: not supported", i, a.Content, looks, other)
		}
		as[looks], t.tables.decoded[id] = a.Content, looks
		t.tables.normalized.Insert(looks, a)
	}
	return nil
}

func (t *Tokenizer) addPostProcessor(p *step) error {
	if p == nil {
		return nil
	}
	switch p.Type {
	case "Sequence":
		return each("processors", p.Processors, t.addPostProcessor)
	case "ByteLevel": // which changes offsets alone
		return nil
	case "TemplateProcessing":
	default:
		return unknown(p, "Sequence, ByteLevel, TemplateProcessing")
	}
	var add template
	to, texts := &add.before, 0
	for i, x := range p.Single {
		switch {
		case x.Sequence != nil:
			to = &add.after
			texts++
		case x.SpecialToken != nil:
			special, ok := p.SpecialTokens[x.SpecialToken.ID]
			if !ok {
				return fmt.Errorf("single[%d] is %q, which special_tokens has not", i, x.SpecialToken.ID)
			}
			for _, id := range special.IDs {
				if _, ok := t.Token(id); !ok {
					return fmt.Errorf("special_tokens of %q has the ID %d, which no token has", x.SpecialToken.ID, id)
				}
			}
			*to = append(*to, special.IDs...)
		default:
			return fmt.Errorf("single[%d] is neither SpecialToken nor Sequence", i)
		}
	}
	if texts != 1 {
		return fmt.Errorf("single has %d texts, and must have one", texts)
	}
	t.add.before = append(add.before, t.add.before...)
	t.add.after = append(t.add.after, add.after...)
	return nil
}

// cutAtSpaces cuts words before spaces where a text is one word, as for Llama 2, no merge has a space
// behind something else, and nothing is left out of a text, beside which others would come together:
// then no merge crosses the cut, so the tokens are the same, and words can be looked up.
func (t *Tokenizer) cutAtSpaces() {
	const space = "▁"
	_, known := t.model.Chars['▁']
	if t.steps.split != nil || t.steps.cut != "" || t.model.Level || t.model.Whole || !known || t.model.Unk < 0 {
		return
	}
	if !slices.ContainsFunc(t.model.Results(), func(id int32) bool {
		return strings.Contains(strings.TrimLeft(t.tokens[id], space), space)
	}) {
		t.steps.cut, t.steps.cutRuns = space, true
	}
}
