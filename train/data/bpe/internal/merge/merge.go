// Package merge is byte-pair encoding (Sennrich et al. 2016): it makes tokens of a word by merges.
package merge

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccl/goccl/train/data/bpe/internal/chars"
)

// Model is a vocabulary and its merges.
type Model struct {
	// Bytes are the tokens of single bytes: with Level those that a word begins as, with ByteBack
	// <0x00> and so on. None is -1.
	Bytes [256]int32
	// Level says that a word begins as bytes, and not as characters.
	Level bool
	// ByteBack makes bytes of a character that has no token.
	ByteBack bool
	// Whole makes one token of a word that is one, whatever the merges.
	Whole bool
	// Chars are the tokens of single characters, without Level.
	Chars map[rune]int32
	// Words are the tokens by their text; with Level that is the bytes that they stand for.
	Words map[string]int32
	// Unk is the token of what has none; -1: that is left out. Fuse makes one of several side by
	// side.
	Unk  int32
	Fuse bool

	pairs  pairs
	result []int32 // of each merge, by rank
}

// Index sets what words are looked up in, by Level: Bytes, Words and Chars.
func (m *Model) Index(vocab map[string]int32) {
	for b := range m.Bytes {
		token := fmt.Sprintf("<0x%02X>", b)
		if m.Level {
			token = string(chars.Letters[b])
		}
		m.Bytes[b] = -1
		if id, ok := vocab[token]; ok {
			m.Bytes[b] = id
		}
	}
	if m.Words = vocab; m.Level {
		m.Words = make(map[string]int32, len(vocab))
		for token, id := range vocab {
			if chars.IsLetters(token) {
				m.Words[string(chars.AppendBytes(nil, token))] = id
			}
		}
		return
	}
	m.Chars = map[rune]int32{}
	for token, id := range vocab {
		if r, n := utf8.DecodeRuneInString(token); n == len(token) {
			m.Chars[r] = id
		}
	}
}

// Reserve makes room for so many merges.
func (m *Model) Reserve(n int) { m.pairs, m.result = newPairs(n), make([]int32, 0, n) }

// Add adds the next merge: of a and b to both. A pair that was there has this rank from now on.
func (m *Model) Add(a, b, both int32) {
	m.pairs.set(a, b, int32(len(m.result)))
	m.result = append(m.result, both)
}

// Results are what the merges make. They are the Model's memory.
func (m *Model) Results() []int32 { return m.result }

// pairs has the rank of each merge, by the two tokens: a table with open addressing. A key is a
// pair, plus one.
type pairs struct {
	keys  []uint64
	ranks []int32
	shift int
}

func newPairs(n int) pairs {
	size := max(bits.Len(uint(2*n)), 4)
	return pairs{make([]uint64, 1<<size), make([]int32, 1<<size), 64 - size}
}

// place is where a pair is, or would be.
func (p *pairs) place(a, b int32) (i int, key uint64) {
	key = (uint64(uint32(a))<<32 | uint64(uint32(b))) + 1
	i = int(key * 0x9e3779b97f4a7c15 >> p.shift)
	for p.keys[i] != key && p.keys[i] != 0 {
		i = (i + 1) & (len(p.keys) - 1)
	}
	return i, key
}

func (p *pairs) set(a, b, rank int32) {
	i, key := p.place(a, b)
	p.keys[i], p.ranks[i] = key, rank
}

// rank is that of a merge; noRank if the two are not merged.
func (p *pairs) rank(a, b int32) int32 {
	i, key := p.place(a, b)
	if p.keys[i] != key {
		return noRank
	}
	return p.ranks[i]
}

const noRank = 1<<31 - 1

// symbol is a part of a word: a token, how many bytes of the word it has, and the rank of its merge
// with the next one.
type symbol struct {
	id, n, rank int32
	prev, next  int32 // for a heap; prev of one that is gone is gone
}

const gone = -2

// Workspace is memory that words share.
type Workspace struct {
	symbols []symbol
	heap    []uint64 // rank<<32 | place
	// Lens are how many bytes of the words the tokens have that Word has appended.
	Lens []int
	// Skipped are bytes without a token, which count as those of the next.
	Skipped int
}

// Word appends the tokens of a word to ids.
func (m *Model) Word(w *Workspace, ids []int32, text string) []int32 {
	if m.Whole {
		if id, ok := m.Words[text]; ok {
			w.Lens = append(w.Lens, len(text))
			return append(ids, id)
		}
	}
	w.symbols = w.symbols[:0]
	m.begin(w, text)
	s := w.symbols
	for i := range s {
		s[i].rank = noRank
		if i+1 < len(s) {
			s[i].rank = m.pairs.rank(s[i].id, s[i+1].id)
		}
	}
	if len(s) > mostScan {
		s = m.mergeByHeap(w)
	} else {
		s = m.mergeByScan(s)
	}
	for _, x := range s {
		ids, w.Lens = append(ids, x.id), append(w.Lens, int(x.n))
	}
	return ids
}

// begin makes the symbols of characters, or of bytes.
func (m *Model) begin(w *Workspace, text string) {
	add := func(id int32, n int) {
		w.symbols = append(w.symbols, symbol{id: id, n: int32(n + w.Skipped)})
		w.Skipped = 0
	}
	unknown := 0 // bytes of unk that are not yet added
	flush := func() {
		if unknown > 0 {
			add(m.Unk, unknown)
		}
		unknown = 0
	}
	for i := 0; i < len(text); {
		size := 1
		id := int32(-1)
		if m.Level {
			id = m.Bytes[text[i]]
		} else {
			var r rune
			r, size = utf8.DecodeRuneInString(text[i:])
			if x, ok := m.Chars[r]; ok && (r != utf8.RuneError || size > 1) {
				id = x
			}
		}
		c := text[i : i+size]
		i += size
		switch {
		case id >= 0:
			flush()
			add(id, size)
		case m.ByteBack && m.hasBytes(c):
			for k := range len(c) {
				add(m.Bytes[c[k]], 1)
			}
		case m.Unk >= 0:
			if !m.Fuse {
				flush()
			}
			unknown += size
		default:
			w.Skipped += size
		}
	}
	flush()
}

// hasBytes reports whether each byte of a character has a token.
func (m *Model) hasBytes(c string) bool {
	for i := range len(c) {
		if m.Bytes[c[i]] < 0 {
			return false
		}
	}
	return true
}

// mostScan is up to how many symbols looking at all of them finds the next merge sooner than a heap
// does.
const mostScan = 32

// mergeByScan makes the merges of a word: always the one of the lowest rank, and of these the
// first.
func (m *Model) mergeByScan(s []symbol) []symbol {
	for {
		best, rank := 0, int32(noRank)
		for i := range s {
			if s[i].rank < rank {
				best, rank = i, s[i].rank
			}
		}
		if rank == noRank {
			return s
		}
		s[best].id, s[best].n = m.result[rank], s[best].n+s[best+1].n
		s = slices.Delete(s, best+1, best+2)
		s[best].rank = noRank
		if best+1 < len(s) {
			s[best].rank = m.pairs.rank(s[best].id, s[best+1].id)
		}
		if best > 0 {
			s[best-1].rank = m.pairs.rank(s[best-1].id, s[best].id)
		}
	}
}

// mergeByHeap does the same to a long word. A place of the heap counts if the rank there is still
// that.
func (m *Model) mergeByHeap(w *Workspace) []symbol {
	s := w.symbols
	w.heap = w.heap[:0]
	for i := range s {
		s[i].prev, s[i].next = int32(i)-1, int32(i)+1
		if s[i].rank != noRank {
			w.heap = append(w.heap, uint64(s[i].rank)<<32|uint64(i))
		}
	}
	slices.Sort(w.heap) // which is a heap
	for len(w.heap) > 0 {
		top := w.pop()
		i, rank := int32(uint32(top)), int32(top>>32)
		if s[i].prev == gone || s[i].rank != rank {
			continue
		}
		k := s[i].next
		s[i].id, s[i].n, s[i].next = m.result[rank], s[i].n+s[k].n, s[k].next
		s[k].prev = gone
		s[i].rank = noRank
		if k = s[i].next; int(k) < len(s) {
			s[k].prev = i
			m.renew(w, i, k)
		}
		if k = s[i].prev; k >= 0 {
			m.renew(w, k, i)
		}
	}
	out := s[:0]
	for i := int32(0); int(i) < len(s); { // in place: what is written was read
		next := s[i].next
		out = append(out, s[i])
		i = next
	}
	return out
}

// renew gives the symbol at i, before the one at k, its rank.
func (m *Model) renew(w *Workspace, i, k int32) {
	s := w.symbols
	if s[i].rank = m.pairs.rank(s[i].id, s[k].id); s[i].rank != noRank {
		w.push(uint64(s[i].rank)<<32 | uint64(i))
	}
}

func (w *Workspace) push(x uint64) {
	w.heap = append(w.heap, x)
	h := w.heap
	for i := len(h) - 1; i > 0 && h[(i-1)/2] > h[i]; i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (w *Workspace) pop() uint64 {
	h := w.heap
	top, n := h[0], len(h)-1
	h[0] = h[n]
	h = h[:n]
	w.heap = h
	for i := 0; 2*i+1 < n; {
		k := 2*i + 1
		if k+1 < n && h[k+1] < h[k] {
			k++
		}
		if h[i] <= h[k] {
			break
		}
		h[i], h[k] = h[k], h[i]
		i = k
	}
	return top
}

// Read reads the merges of a file: pairs of tokens or, as older files have them, with a space between.
func Read(raw json.RawMessage) (list [][]string, err error) {
	if err = json.Unmarshal(raw, &list); err != nil {
		list = nil
		var lines []string
		if json.Unmarshal(raw, &lines) != nil {
			return nil, err
		}
		for _, line := range lines {
			list = append(list, strings.Split(line, " "))
		}
	}
	if len(list) > math.MaxInt32-1 {
		return nil, errors.New("too many")
	}
	return list, nil
}
