package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccl/goccl/train/data/bpe/internal/chars"
)

// Token is one of a file's added_tokens: it is found in a text before BPE, and is never merged.
type Token struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // counts only between characters that are of no word
	LStrip     bool   `json:"lstrip"`      // takes the white space before it
	RStrip     bool   `json:"rstrip"`      // and after it
	Normalized bool   `json:"normalized"`  // is looked for in the normalized text
	Special    bool   `json:"special"`
}

// Trie finds added tokens: the first in a text and, of several that begin there, the longest.
type Trie struct {
	nodes  []node
	tokens []Token
	begins [256]bool // how a token begins
}

type node struct {
	next  map[byte]int
	token int // of the tokens; -1: none ends here
}

// NewTrie returns one that finds nothing.
func NewTrie() *Trie { return &Trie{nodes: []node{{token: -1}}} }

// Insert adds a token that looks like text.
func (t *Trie) Insert(text string, token Token) {
	if text == "" {
		return
	}
	t.begins[text[0]] = true
	at := 0
	for i := range len(text) {
		k, ok := t.nodes[at].next[text[i]]
		if !ok {
			if t.nodes[at].next == nil {
				t.nodes[at].next = map[byte]int{}
			}
			k = len(t.nodes)
			t.nodes[at].next[text[i]] = k
			t.nodes = append(t.nodes, node{token: -1})
		}
		at = k
	}
	if t.nodes[at].token < 0 {
		t.nodes[at].token = len(t.tokens)
	}
	t.tokens = append(t.tokens, token)
}

// find is the first token at from or later, as its bytes in text; nil if there is none.
func (t *Trie) find(text string, from int) (token *Token, lo, hi int) {
	for lo = from; lo < len(text); lo++ {
		if !t.begins[text[lo]] {
			continue
		}
		at, ok := 0, true
		for i := lo; i < len(text); {
			if at, ok = t.nodes[at].next[text[i]]; !ok {
				break
			}
			i++
			if k := t.nodes[at].token; k >= 0 {
				token, hi = &t.tokens[k], i
			}
		}
		if token != nil {
			return token, lo, hi
		}
	}
	return nil, 0, 0
}

// Split calls f for each added token in text, and for what lies between, with an ID of -1.
func (t *Trie) Split(text string, f func(id int32, lo, hi int)) {
	done := 0
	if len(t.tokens) > 0 {
		for from := 0; ; {
			token, lo, hi := t.find(text, from)
			if token == nil {
				break
			}
			from = hi
			if token.SingleWord && (endsWord(text[:lo]) || beginsWord(text[hi:])) {
				continue
			}
			if token.LStrip {
				lo = done + len(strings.TrimRightFunc(text[done:max(lo, done)], unicode.IsSpace))
			}
			if token.RStrip {
				// Up to done there is white space alone: the token before has taken it, too.
				hi = len(text) - len(strings.TrimLeftFunc(text[max(hi, done):], unicode.IsSpace))
			}
			if done < lo {
				f(-1, done, lo)
			}
			if lo < hi { // else the token before has taken all of it
				f(token.ID, lo, hi)
				done = hi
			}
		}
	}
	if done < len(text) {
		f(-1, done, len(text))
	}
}

func endsWord(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && chars.OfWord(r)
}

func beginsWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && chars.OfWord(r)
}
