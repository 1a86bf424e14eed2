package bpe

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/goccl/goccl/train/data/bpe/internal/chars"
)

// decoder makes text of tokens.
type decoder struct {
	kind      decoding
	replace   [][2]string // in each token
	grown     int         // by them, at most
	space     string      // byDropping: stands for a space
	dropFirst bool        // byDropping: not at the beginning of the first token
	back      bool        // <0x0A> is a byte
	strip     string      // a character, so many of which the text does not begin with
	strips    int
	fused     bool // Fuse was there
}

type decoding uint8

const (
	byJoining  decoding = iota // there is no decoder: spaces stand between tokens
	byBytes                    // ByteLevel
	byDropping                 // Metaspace
	byReplace                  // Replace, ByteFallback, Fuse and Strip
)

// Decode returns the text of tokens; with skipSpecial without special ones. An ID that no token has
// is left out. What is no UTF-8 is U+FFFD.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	s := Stream{t: t, skipSpecial: skipSpecial, whole: true, strips: t.dec.strips}
	for _, id := range ids {
		s.add(id)
	}
	s.flush()
	return s.out.String()
}

// Stream decodes tokens one by one, as a model generates them.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	whole       bool // all is wanted at the end
	begun       bool
	pending     []byte // the beginning of a character, or of a run of bytes
	strips      int    // characters that are yet to be left out
	out         strings.Builder
}

// Stream returns a Stream, which is for one goroutine.
func (t *Tokenizer) Stream(skipSpecial bool) *Stream {
	return &Stream{t: t, skipSpecial: skipSpecial, strips: t.dec.strips}
}

// Next returns the text that a token adds: "" while a character is not complete. All that Next and
// End return together is what Decode would. One case differs: tokens of single bytes
// (byte_fallback) that begin as characters and go on as none are all U+FFFD in Decode, and here
// only from there on.
func (s *Stream) Next(id int32) string {
	s.out.Reset()
	s.add(id)
	return s.out.String()
}

// End returns what the last tokens leave: U+FFFD for a character that is not complete. The Stream
// can begin again.
func (s *Stream) End() string {
	s.out.Reset()
	s.flush()
	s.begun, s.strips = false, s.t.dec.strips
	return s.out.String()
}

func (s *Stream) add(id int32) {
	token, ok := s.t.Token(id)
	token = cmp.Or(s.t.tables.decoded[id], token)
	if !ok || s.skipSpecial && s.t.tables.left[token] {
		return
	}
	d := &s.t.dec
	first := !s.begun
	s.begun = true
	switch d.kind {
	case byJoining:
		if !first {
			s.out.WriteByte(' ')
		}
		s.out.WriteString(token)
	case byBytes:
		s.pending = chars.AppendBytes(s.pending, token)
		if !s.whole {
			n := chars.Complete(s.pending)
			s.out.WriteString(chars.Lossy(s.pending[:n]))
			s.pending = append(s.pending[:0], s.pending[n:]...)
		}
	case byDropping:
		if first && d.dropFirst {
			token = strings.ReplaceAll(token, d.space, "")
		}
		s.out.WriteString(strings.ReplaceAll(token, d.space, " "))
	case byReplace:
		s.addReplaced(token)
	}
}

func (s *Stream) addReplaced(token string) {
	d := &s.t.dec
	for _, r := range d.replace {
		token = strings.ReplaceAll(token, r[0], r[1])
	}
	if b, ok := chars.ByteOf(token); ok && d.back {
		if s.pending = append(s.pending, b); !s.whole && utf8.Valid(s.pending) {
			s.write(string(s.pending))
			s.pending = s.pending[:0]
		}
		return
	}
	s.flush()
	s.write(token)
}

// write writes a text without the characters that are to be left out at the beginning.
func (s *Stream) write(text string) {
	for s.strips > 0 && text != "" {
		rest, ok := strings.CutPrefix(text, s.t.dec.strip)
		if !ok {
			s.strips = 0
			break
		}
		text = rest
		s.strips--
	}
	s.out.WriteString(text)
}

// flush writes what is pending.
func (s *Stream) flush() {
	switch {
	case s.t.dec.kind == byBytes:
		s.out.WriteString(chars.Lossy(s.pending))
	case utf8.Valid(s.pending):
		s.write(string(s.pending))
	default:
		s.write(strings.Repeat("\ufffd", len(s.pending)))
	}
	s.pending = s.pending[:0]
}
