package bpe_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/data/bpe"
)

// folders have tokenizers, texts and what Hugging Face's library makes of them: test/text/train.py writes such. That in
// testdata is small; make text gives another with ten tokenizers and 100,000 lines.
func folders() []string {
	list := []string{"testdata"}
	if more := os.Getenv("BPE_TEST_DIR"); more != "" {
		list = append(list, more)
	}
	return list
}

func load(t testing.TB, name string, to any) {
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, to))
}

func TestAsHuggingFace(t *testing.T) {
	for _, dir := range folders() {
		var texts []string
		load(t, filepath.Join(dir, "texts.json"), &texts)
		size := 0
		for _, x := range texts {
			size += len(x)
		}
		names, err := filepath.Glob(filepath.Join(dir, "*.ids"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(names), 6)
		for _, name := range names {
			base := strings.TrimSuffix(name, ".ids")
			t.Run(base, func(t *testing.T) {
				tok, err := bpe.Read(base + ".json")
				require.NoError(t, err)
				raw, err := os.ReadFile(name)
				require.NoError(t, err)
				var decoded [][2]string
				load(t, base+".decoded", &decoded)
				tokens := 0
				var took time.Duration
				for i, x := range texts {
					want := make([]int32, binary.LittleEndian.Uint32(raw))
					for k := range want {
						want[k] = int32(binary.LittleEndian.Uint32(raw[4+4*k:]))
					}
					raw = raw[4+4*len(want):]
					begun := time.Now()
					got := tok.Encode(x, true)
					took += time.Since(begun)
					tokens += len(got)
					if !slices.Equal(want, got) {
						t.Fatalf("%+q: %v, Hugging Face %v", x, got, want)
					}
					if all, skipped := tok.Decode(want, false), tok.Decode(want, true); all != decoded[i][0] || skipped != decoded[i][1] {
						t.Fatalf("%v: %+q, %+q, Hugging Face %+q", want, all, skipped, decoded[i])
					}
					if streamed := stream(tok, want); streamed != decoded[i][0] {
						t.Fatalf("%v streams %+q, Hugging Face %+q", want, streamed, decoded[i][0])
					}
				}
				require.Empty(t, raw)
				t.Logf("%d texts, %d tokens as Hugging Face, %.1f MB/s encoded", len(texts), tokens, float64(size)/took.Seconds()/1e6)
			})
		}
	}
}

func stream(tok *bpe.Tokenizer, ids []int32) string {
	s := tok.Stream(false)
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(s.Next(id))
	}
	return b.String() + s.End()
}

// The marks of spans are those of the tokens that have their bytes: an ASCII text cut at any place, in each kind.
func TestEncodeSpans(t *testing.T) {
	const text = "Hello  there, 12 words and <|end|>\n\nmore's."
	for _, name := range []string{"gpt2", "llama3", "qwen2", "llama2", "mistral", "pieces"} {
		tok, err := bpe.Read("testdata/" + name + ".json")
		require.NoError(t, err)
		want := tok.Encode(text, false)
		// Where each token ends follows from what decodes: token by token, in one stream.
		s := tok.Stream(false)
		ends, at := make([]int, len(want)), 0
		for i, id := range want {
			at += len(s.Next(id))
			ends[i] = at
		}
		if at+len(s.End()) != len(text) { // of pieces, whose unknown characters decode to <unk>
			continue
		}
		for lo := range len(text) {
			for hi := lo + 1; hi <= len(text); hi += 5 {
				ids, in := tok.EncodeSpans(text, [][2]int{{lo, hi}})
				require.Equal(t, want, ids)
				from := 0
				for i, end := range ends {
					if end > from { // an empty one is the space before a text
						require.Equal(t, from < hi && lo < end, in[i], "%s: token %d, bytes %d to %d, span %d to %d", name, i, from, end, lo, hi)
					}
					from = end
				}
			}
		}
	}
}

// Several spans are what each of them is, and what they cost does not grow with the text's square.
func TestEncodeManySpans(t *testing.T) {
	tok, err := bpe.Read("testdata/qwen2.json")
	require.NoError(t, err)
	text := strings.Repeat("e\u0301<|end|>words ", 20_000)
	var spans [][2]int
	for i := 0; i+10 < len(text); i += 10_000 {
		spans = append(spans, [2]int{i, i + 10})
	}
	ids, in := tok.EncodeSpans(text, spans)
	require.Equal(t, tok.Encode(text, false), ids)
	_, first := tok.EncodeSpans(text[:100], spans[:1])
	n := slices.Index(first, false)
	require.Greater(t, n, 2)
	require.Equal(t, first[:n+1], in[:n+1])
}

// What would take long if it were quadratic: half a MB of one character, also streamed, where the tokens are single bytes,
// and of white space that is an added token with lstrip and rstrip.
func TestLong(t *testing.T) {
	for _, name := range []string{"gpt2", "llama2", "llama3", "qwen2"} {
		tok, err := bpe.Read("testdata/" + name + ".json")
		require.NoError(t, err)
		for _, x := range []string{"a", " ", "😀", "0", "\n ", "'"} {
			text := strings.Repeat(x, 1<<19/len(x))
			ids := tok.Encode(text, false)
			require.Equal(t, text, tok.Decode(ids, false), "%s of %q", name, x)
			require.Equal(t, text, stream(tok, ids), "%s of %q", name, x)
		}
	}
	for _, flag := range []string{"lstrip", "rstrip"} {
		tok, err := bpe.Parse([]byte(`{"model":{"type":"BPE","vocab":{"a":0," ":1},"merges":[]},"added_tokens":[{"id":1,"content":" ","` + flag + `":true}]}`))
		require.NoError(t, err)
		want := slices.Repeat([]int32{1}, 1<<20)
		require.Equal(t, append(append([]int32{0}, want...), 0), tok.Encode("a"+strings.Repeat(" ", 1<<20)+"a", false))
	}
}

// A character without a token moves no marks.
func TestSpansSkip(t *testing.T) {
	tok, err := bpe.Parse([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}}`))
	require.NoError(t, err)
	ids, in := tok.EncodeSpans("xxabxab", [][2]int{{2, 3}, {5, 6}})
	require.Equal(t, []int32{0, 1, 0, 1}, ids)
	require.Equal(t, []bool{true, false, true, false}, in)
}

// Prepend is for what the normalizers before it have left.
func TestPrependToNothing(t *testing.T) {
	tok, err := bpe.Parse([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"_":1},"merges":[]},"normalizer":{"type":"Sequence","normalizers":[` +
		`{"type":"Replace","pattern":{"String":"x"},"content":""},{"type":"Prepend","prepend":"_"}]}}`))
	require.NoError(t, err)
	require.Empty(t, tok.Encode("xx", false))
	require.Equal(t, []int32{1, 0}, tok.Encode("xa", false))
}

// Metaspace cuts before each of its signs, also where the text does not begin with one: the tokens are Hugging Face's.
func TestMetaspaceCuts(t *testing.T) {
	for _, tc := range []struct {
		scheme, text string
		split        bool
		want         []int32
	}{
		{"never", "a b", true, []int32{0, 4}},
		{"never", "a b", false, []int32{3, 1}},
		{"never", "ab  a b", true, []int32{0, 1, 2, 2, 0, 4}},
		{"first", "<s>a b", true, []int32{5, 0, 4}},
		{"first", "a b<s>a b", true, []int32{2, 0, 4, 5, 0, 4}},
		{"always", "<s>a b", true, []int32{5, 2, 0, 4}},
	} {
		tok, err := bpe.Parse(fmt.Appendf(nil, `{"added_tokens":[{"id":5,"content":"<s>","special":true}],"pre_tokenizer":{"type":"Metaspace",`+
			`"replacement":"▁","prepend_scheme":%q,"split":%v},"model":{"type":"BPE","vocab":{"a":0,"b":1,"▁":2,"a▁":3,"▁b":4},`+
			`"merges":[["a","▁"],["▁","b"]]}}`, tc.scheme, tc.split))
		require.NoError(t, err)
		require.Equal(t, tc.want, tok.Encode(tc.text, false), tc)
	}
}

// What random tokenizers have shown: the tokens are those of tokenizers 0.23.3.
func TestOddTokenizers(t *testing.T) {
	const vocab = `"model":{"type":"BPE","vocab":{"a":0," ":1},"merges":[]}}`
	const signs = `"model":{"type":"BPE","vocab":{"▁":0,"▁▁":1},"merges":[["▁","▁"]]}}`
	for _, tc := range []struct {
		file, text string
		want       []int32
	}{
		// The token before has taken all white space.
		{`{"added_tokens":[{"id":1,"content":" ","lstrip":true,"rstrip":true}],` + vocab, "a    a", []int32{0, 1, 0}},
		{`{"added_tokens":[{"id":2,"content":"<s>","rstrip":true},{"id":3,"content":"  ","lstrip":true}],` + vocab, "<s>  a", []int32{2, 0}},
		{`{"added_tokens":[{"id":2,"content":"<s>","rstrip":true},{"id":3,"content":"  "}],` + vocab, "<s>  a", []int32{2, 3, 0}},
		// What has no token is left out, and what is beside it merges.
		{`{"pre_tokenizer":{"type":"Metaspace","replacement":"▁","split":false},` + signs, "x y", []int32{1}},
		{`{"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},` + signs, " x y", []int32{1}},
	} {
		tok, err := bpe.Parse([]byte(tc.file))
		require.NoError(t, err)
		require.Equal(t, tc.want, tok.Encode(tc.text, false), tc)
	}
	tok, err := bpe.Parse([]byte(`{"added_tokens":[{"id":1,"content":".","normalized":true,"special":true},{"id":2,"content":"</s>","special":true}],` +
		`"normalizer":{"type":"Prepend","prepend":"a"},"model":{"type":"BPE","vocab":{"b":0},"merges":[]}}`))
	require.NoError(t, err)
	require.Equal(t, "b a. </s>", tok.Decode([]int32{0, 1, 2}, false))
	require.Equal(t, "b a.", tok.Decode([]int32{0, 1, 2}, true), "special is what looks so when it is decoded")
}

func TestConcurrent(t *testing.T) {
	tok, err := bpe.Read("testdata/llama3.json")
	require.NoError(t, err)
	var texts []string
	load(t, "testdata/texts.json", &texts)
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for _, x := range texts {
				if ids := tok.Encode(x, false); tok.Decode(ids, false) != strings.ToValidUTF8(x, "\ufffd") {
					t.Errorf("%+q", x)
				}
			}
		}()
	}
	wg.Wait()
}

// A text that is no UTF-8 goes through byte-level tokens unharmed.
func TestNoUTF8(t *testing.T) {
	tok, err := bpe.Read("testdata/gpt2.json")
	require.NoError(t, err)
	ids := tok.Encode("a\xffb\xe2\x82 \xed\xa0\x80", false)
	require.Equal(t, "a\ufffdb\ufffd \ufffd\ufffd\ufffd", tok.Decode(ids, false))
}

func TestAccessors(t *testing.T) {
	tok, err := bpe.Read("testdata/llama2.json")
	require.NoError(t, err)
	id, ok := tok.ID("</s>")
	require.True(t, ok)
	require.Equal(t, int32(2), id)
	token, ok := tok.Token(2)
	require.True(t, ok)
	require.Equal(t, "</s>", token)
	require.True(t, tok.Special(2))
	require.False(t, tok.Special(5))
	require.Equal(t, 606, tok.Len())
	for _, id := range []int32{-1, 606} {
		_, ok = tok.Token(id)
		require.False(t, ok)
	}
	before, after := tok.Added()
	require.Equal(t, []int32{1}, before)
	require.Empty(t, after)
	require.Equal(t, "", tok.Decode([]int32{-5, 1 << 30}, false))
}

// What is not supported, or wrong, is named.
func TestErrors(t *testing.T) {
	const model = `"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]}`
	for _, tc := range []struct{ file, want string }{
		{`{`, "bpe: unexpected end of JSON input"},
		{`{}`, "bpe: model is missing"},
		{"{\"x\":\"\xff\"," + model + `}`, "bpe: the file is no UTF-8"},
		{`{"model":{"type":"Unigram"}}`, `bpe: model.type "Unigram" is not supported; this is: BPE`},
		{`{"model":{"type":"BPE","vocab":{"a":"0"}}}`, "bpe: json: cannot unmarshal string into Go struct field .model.vocab of type int32"},
		{`{"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}}`, `bpe: model.vocab."b" has ID 0, and so has "a"`},
		{`{"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}}`, `bpe: model.vocab."a" has ID -1, with 1 tokens`},
		{`{"model":{"type":"BPE","vocab":{"a":2000000000},"merges":[]}}`, `bpe: model.vocab."a" has ID 2000000000, with 1 tokens`},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":[["a","b"]]}}`, `bpe: model.merges[0] is ["a" "b"]: they, or what they make together, are not in vocab`},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}}`, `bpe: model.merges[0] is ["a"], and must be two tokens`},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":{}}}`, "bpe: model.merges: json: cannot unmarshal object into Go value of type [][]string"},
		{`{"model":{"type":"BPE","vocab":{"a":0}}}`, "bpe: model.merges is missing"},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":[],"unk_token":"u"}}`, `bpe: model.unk_token "u" is not in vocab`},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.1}}`, "bpe: model.dropout is set: that is not supported"},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":[],"end_of_word_suffix":"</w>"}}`, "bpe: model.end_of_word_suffix is set: that is not supported"},
		{`{"truncation":{},` + model + `}`, "bpe: truncation is set: cut the tokens yourself, and set it to null"},
		{`{"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Lowercase"}]},` + model + `}`,
			`bpe: normalizer.normalizers[1].type "Lowercase" is not supported; these are: Sequence, Prepend, Replace, NFC, NFD, NFKC, NFKD`},
		{`{"normalizer":{"type":"Replace","pattern":{"Regex":"a"}},` + model + `}`, "bpe: normalizer.pattern must be a String: no Regex is supported"},
		{`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\w+"},"behavior":"Isolated"},` + model + `}`,
			`bpe: pre_tokenizer.pattern {"String":null,"Regex":"\\w+"} is none of the 4 known: those of GPT-2, Llama 3 and Qwen 2`},
		{`{"normalizer":{"type":"Sequence","normalizers":[` + strings.Repeat(`{"type":"Replace","pattern":{"String":"a"},"content":"aa"},`, 8) + `{"type":"Replace","pattern":{"String":"a"},"content":"bb"}]},` + model + `}`,
			"bpe: normalizer.normalizers[8].content of 2 bytes for 1, with those before it, makes a text 512 times as long: 256 is the most"},
		{`{"decoder":{"type":"Sequence","decoders":[` + strings.Repeat(`{"type":"Replace","pattern":{"String":"a"},"content":"aaaa"},`, 4) + `{"type":"Replace","pattern":{"String":"a"},"content":"bb"}]},` + model + `}`,
			"bpe: decoder.decoders[4].content of 2 bytes for 1, with those before it, makes a text 512 times as long: 256 is the most"},
		{`{"added_tokens":[{"id":3,"content":"` + strings.Repeat("x", 1<<22+1) + `"}],` + model + `}`, "bpe: added_tokens[0].content has 4194305 bytes: all together 4194304 are the most"},
		{`{"pre_tokenizer":{"type":"Metaspace","replacement":"__"},` + model + `}`, `bpe: pre_tokenizer.replacement is "__", and must be one character`},
		{`{"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"last"},` + model + `}`, `bpe: pre_tokenizer.prepend_scheme "last" is not supported: always, first and never are`},
		{`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Metaspace","replacement":"_"}]},` + model + `}`,
			`bpe: pre_tokenizer.pretokenizers[1].type "Metaspace" stands behind ByteLevel or Metaspace, which must be the last`},
		{`{"decoder":{"type":"WordPiece"},` + model + `}`, `bpe: decoder.type "WordPiece" is not supported; these are: Sequence, ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip`},
		{`{"decoder":{"type":"Strip","content":" ","start":1},` + model + `}`, "bpe: decoder.start and content must be of one character, stop 0, and the Strip come after Fuse"},
		{`{"added_tokens":[{"id":3,"content":""}],` + model + `}`, "bpe: added_tokens[0].content is empty"},
		{`{"normalizer":{"type":"Replace","pattern":{"String":"x"},"content":""},"added_tokens":[{"id":3,"content":"x","normalized":true}],` + model + `}`,
			`bpe: added_tokens[0].content is "x", for which normalized text has "", as for "": not supported`},
		{`{"normalizer":{"type":"NFC"},"added_tokens":[{"id":3,"content":"é","normalized":true},{"id":4,"content":"e\u0301","normalized":true}],` + model + `}`,
			`bpe: added_tokens[1].content is "e` + "\u0301" + `", for which normalized text has "é", as for "é": not supported`},
		{`{"normalizer":{"type":"Replace","pattern":{"String":"x"},"content":"y"},"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"first"},` + model + `}`,
			"bpe: pre_tokenizer.prepend_scheme is first behind a Replace, after which another piece may be the first: not supported"},
		{`{"added_tokens":[{"id":7,"content":"x"}],` + model + `}`, `bpe: added_tokens[0].id of "x" is 7, and follows to be 3 from vocab and the tokens before it`},
		{`{"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}]},` + model + `}`, `bpe: post_processor.single[0] is "x", which special_tokens has not`},
		{`{"post_processor":{"type":"TemplateProcessing","single":[]},` + model + `}`, "bpe: post_processor.single has 0 texts, and must have one"},
		{`{"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}],"special_tokens":{"x":{"ids":[9]}}},` + model + `}`,
			`bpe: post_processor.special_tokens of "x" has the ID 9, which no token has`},
	} {
		_, err := bpe.Parse([]byte(tc.file))
		require.EqualError(t, err, tc.want)
	}
	_, err := bpe.Read(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Whatever a file says, its tokenizer encodes without a panic, and what Decode makes of the tokens Stream makes, too.
func FuzzParse(f *testing.F) {
	const model = `"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"▁":3,"▁ab":4,"Ġ":5},"merges":[["a","b"],["▁","ab"]],"unk_token":"a","fuse_unk":true`
	for _, rest := range []string{
		`{` + model + `}}`,
		`{"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"},` + model + `,"ignore_merges":true}}`,
		`{"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},` +
			`"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1}]},` + model + `,"byte_fallback":true}}`,
		`{"normalizer":{"type":"NFKC"},"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first"},"decoder":{"type":"Metaspace","replacement":"▁"},` + model + `}}`,
		`{"added_tokens":[{"id":1,"content":"b","lstrip":true,"single_word":true},{"id":6,"content":"é","rstrip":true,"normalized":true,"special":true}],` +
			`"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"b"}},{"Sequence":{"id":"A"}}],"special_tokens":{"b":{"ids":[1]}}},` + model + `}}`,
	} {
		f.Add([]byte(rest), "ab  é\n b")
	}
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		tok, err := bpe.Parse(b)
		if err != nil {
			return
		}
		ids := tok.Encode(text, true)
		tok.Decode(ids, true)
		_, in := tok.EncodeSpans(text, [][2]int{{1, len(text) / 2}})
		require.LessOrEqual(t, len(in), len(ids))
	})
}

// Byte-level tokens decode to their text; and each way to encode a text has the same tokens.
func FuzzEncode(f *testing.F) {
	var toks []*bpe.Tokenizer
	for _, name := range []string{"gpt2", "llama3", "llama2", "mistral", "qwen2"} {
		tok, err := bpe.Read("testdata/" + name + ".json")
		require.NoError(f, err)
		toks = append(toks, tok)
	}
	for _, text := range []string{"Hello  world's 12345", "\u0344\u1100\u1161", "▁ <s> \xff\xfe", strings.Repeat("ab", 40)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, tok := range toks {
			ids := tok.Encode(text, false)
			if i < 2 && strings.ToValidUTF8(text, "") == text {
				require.Equal(t, text, tok.Decode(ids, false))
			}
			alone, in := tok.EncodeSpans(text, [][2]int{{0, len(text)}})
			require.True(t, slices.Equal(ids, alone))
			require.False(t, slices.Contains(in, false), "each token has bytes of the text")
			if i < 2 {
				require.Equal(t, tok.Decode(ids, false), stream(tok, ids))
			}
		}
	})
}

func Example() {
	tok, err := bpe.Read("testdata/llama3.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := tok.Encode("It's 2026.", true)
	fmt.Println(ids)
	fmt.Println(tok.Decode(ids, true))
	s := tok.Stream(true) // as a model generates
	for _, id := range ids {
		fmt.Printf("%q ", s.Next(id))
	}
	fmt.Printf("%q\n", s.End())
	// Output:
	// [0 42 85 319 222 19 17 19 23 15]
	// It's 2026.
	// "" "I" "t" "'s" " " "2" "0" "2" "6" "." ""
}

func BenchmarkEncode(b *testing.B) {
	dir := os.Getenv("BPE_TEST_DIR")
	if dir == "" {
		dir = "testdata"
	}
	text, err := os.ReadFile(os.Getenv("BPE_TEST_TEXT"))
	if err != nil {
		text = []byte(strings.Repeat("The tokens are those of a text, word by word; it's 2026.\n", 1000))
	}
	for _, name := range []string{"gpt2", "llama3", "qwen2", "llama2", "mistral"} {
		b.Run(name, func(b *testing.B) {
			tok, err := bpe.Read(filepath.Join(dir, name+".json"))
			require.NoError(b, err)
			lines := strings.SplitAfter(string(text), "\n")
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for _, line := range lines {
					tok.Encode(line, false)
				}
			}
		})
	}
}
