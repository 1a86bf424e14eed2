package text_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/data/bpe"
	"github.com/goccl/goccl/train/data/chat"
	"github.com/goccl/goccl/train/data/loader"
	"github.com/goccl/goccl/train/data/pack"
	"github.com/goccl/goccl/train/data/text"
)

func tokenizer(t testing.TB) *bpe.Tokenizer {
	tok, err := bpe.Read("../bpe/testdata/llama3.json")
	require.NoError(t, err)
	return tok
}

func file(t testing.TB, content string) string {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(content), 0o666))
	return name
}

func TestOpen(t *testing.T) {
	long := strings.Repeat("x", 3<<20) // longer than what is read at once
	for _, tc := range []struct {
		split text.Split
		in    []string
		want  []string
	}{
		{text.Lines, []string{"a\nb\n", "", "c"}, []string{"a", "b", "c"}},
		{text.Lines, []string{"\na\r\n\n  b \n"}, []string{"", "a", "", "  b"}},
		{text.Lines, []string{long + "\n" + long + "y\nz"}, []string{long, long + "y", "z"}},
		{text.Paragraphs, []string{"\n\na\nb\n\n \nc\n", "d\n\n\n", " \n"}, []string{"a\nb", "c", "d"}},
		{text.Paragraphs, []string{long + "\n\n" + long + "\n" + long}, []string{long, long + "\n" + long}},
		{text.Whole, []string{"a\n\nb\n", "", "c"}, []string{"a\n\nb", "c"}},
	} {
		var names []string
		for _, x := range tc.in {
			names = append(names, file(t, x))
		}
		f, err := text.Open(tc.split, names...)
		require.NoError(t, err)
		var got []string
		for i := range f.Len() {
			doc, err := f.Doc(i)
			require.NoError(t, err)
			got = append(got, string(doc))
		}
		require.Equal(t, tc.want, got)
		for _, i := range []int{-1, f.Len()} {
			_, err = f.Doc(i)
			require.EqualError(t, err, fmt.Sprintf("data/text: document %d of %d", i, f.Len()))
		}
		require.NoError(t, f.Close())
	}
	_, err := text.Open(text.Lines, filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = text.Open(text.Split(7), file(t, "x"))
	require.ErrorContains(t, err, "Open: there is no Split 7")
	f, err := text.Open(text.Lines)
	require.NoError(t, err)
	require.Zero(t, f.Len())
}

// Of many files few are open at once, and each is the one that it was when Open read it.
func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for i := range 100 {
		names = append(names, filepath.Join(dir, strconv.Itoa(i)))
		require.NoError(t, os.WriteFile(names[i], fmt.Appendf(nil, "%d\n%d\n", i, i+1000), 0o600))
	}
	open := func() (n int) {
		list, err := filepath.Glob("/proc/self/fd/*")
		require.NoError(t, err)
		for _, fd := range list {
			if to, err := os.Readlink(fd); err == nil && filepath.Dir(to) == dir {
				n++
			}
		}
		return n
	}
	most := 0
	if runtime.GOOS == "linux" {
		most = 64
	}
	f, err := text.Open(text.Lines, names...)
	require.NoError(t, err)
	require.Equal(t, most, open())
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 200 {
				k := (i*37 + g*11) % 200
				doc, err := f.Doc(k)
				if want := strconv.Itoa(k/2 + k%2*1000); err != nil || string(doc) != want {
					t.Errorf("document %d is %q, want %s: %v", k, doc, want, err)
				}
			}
		}()
	}
	wg.Wait()
	require.Equal(t, most, open())
	for i := range 64 {
		_, err := f.Doc(2 * (i + 30))
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(names[3], []byte("33\n1003\n"), 0o600)) // while it is not open
	_, err = f.Doc(7)
	require.EqualError(t, err, "data/text: "+names[3]+", document 2 (from 1): the file was changed or replaced while it was in use")
	require.NoError(t, f.Close())
	require.Zero(t, open())
	_, err = f.Doc(0)
	require.ErrorIs(t, err, os.ErrClosed)
}

// Whatever a file has, its documents can be read, and an encoder makes tokens of them or an error.
func FuzzFiles(f *testing.F) {
	tok := tokenizer(f)
	tmpl, err := chat.Parse(chatML, nil)
	require.NoError(f, err)
	encoders := []text.Encoder{text.Plain(tok, 1), text.Field(tok, "text", 1), text.Completion(tok, 1), text.Chat(tok, tmpl)}
	f.Add([]byte("{\"text\": \"x\"}\n\n{\"prompt\": \"a\", \"completion\": \"b\"}\r\n"))
	f.Add([]byte(`{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [{"type": "text"}]}], "tools": null}`))
	name := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, content []byte) {
		require.NoError(t, os.WriteFile(name, content, 0o666))
		for _, split := range []text.Split{text.Lines, text.Paragraphs, text.Whole} {
			files, err := text.Open(split, name)
			require.NoError(t, err)
			kept := 0
			for i := range files.Len() {
				doc, err := files.Doc(i)
				require.NoError(t, err)
				kept += len(strings.Join(strings.Fields(string(doc)), ""))
				for _, encode := range encoders {
					tokens, answers, err := encode(doc)
					require.True(t, err == nil || tokens == nil)
					require.True(t, answers == nil || len(answers) == len(tokens))
				}
			}
			require.Equal(t, len(strings.Join(strings.Fields(string(content)), "")), kept, "no text is lost, and none comes twice")
			require.NoError(t, files.Close())
		}
	})
}

const chatML = `{% for m in messages %}<|end|>{{ m.role }}: {{ m.content }}{% endfor %}{% if add_generation_prompt %}<|end|>assistant: {% endif %}`

// What are targets of training, as text.
func TestAnswers(t *testing.T) {
	tok := tokenizer(t)
	tmpl, err := chat.Parse(chatML, nil)
	require.NoError(t, err)
	marked, err := chat.Parse(strings.ReplaceAll(chatML, "{{ m.content }}",
		"{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}"), nil)
	require.NoError(t, err)
	thinking, err := chat.Parse("{% if think %}[{{ level }}]{% endif %}"+chatML, nil)
	require.NoError(t, err)
	const talk = `{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Me."}]}`
	for _, tc := range []struct {
		enc          text.Encoder
		doc          string
		all, answers string
	}{
		{text.Plain(tok, -1), "some text", "<s>some text", "<s>some text"},
		{text.Plain(tok, 1), "some text", "<s>some text<|end|>", "<s>some text<|end|>"},
		{text.Plain(tok, 1), "some text<|end|>", "<s>some text<|end|>", "<s>some text<|end|>"},
		{text.Plain(tok, 1), "", "", ""},
		{text.Field(tok, "text", 1), `{"text": "é\n", "x": 1}`, "<s>é\n<|end|>", "<s>é\n<|end|>"},
		{text.Completion(tok, 1), `{"prompt": "1+1=", "completion": "2"}`, "<s>1+1=2<|end|>", "2<|end|>"},
		{text.Chat(tok, tmpl), talk, "<|end|>user: Hi<|end|>assistant: Hello!<|end|>user: Who?<|end|>assistant: Me.", "Hello!Me."},
		{text.Chat(tok, thinking), `{"messages": [{"role": "assistant", "content": "x"}], "chat_template_kwargs": {"think": true, "level": 2}}`,
			"[2]<|end|>assistant: x", "x"},
		{text.Chat(tok, marked), talk, "<|end|>user: Hi<|end|>assistant: Hello!<|end|>user: Who?<|end|>assistant: Me.", "Hello!Me."},
	} {
		ids, wanted, err := tc.enc([]byte(tc.doc))
		require.NoError(t, err)
		require.Equal(t, tc.all, tok.Decode(ids, false))
		var targets []int32
		for i, id := range ids {
			if wanted == nil || wanted[i] {
				targets = append(targets, id)
			}
		}
		require.Equal(t, tc.answers, tok.Decode(targets, false))
	}
	for _, tc := range []struct {
		enc       text.Encoder
		doc, want string
	}{
		{text.Below(1<<20, text.Plain(tok, 1<<20)), "{", "token 2 is 1048576: the model has 1048576"},
		{text.Field(tok, "text", 1), `{"x": 1}`, `there is no field "text"`},
		{text.Field(tok, "text", 1), `{"text": 1}`, `field "text": json: cannot unmarshal number into Go value of type string`},
		{text.Completion(tok, 1), `{"prompt": "x"}`, `there is no field "completion"`},
		{text.Completion(tok, 1), `{"prompt": null, "completion": "x"}`, `field "prompt" is null: want a string`},
		{text.Field(tok, "text", 1), `{"text": null}`, `field "text" is null: want a string`},
		{text.Chat(tok, tmpl), `{"messages": []}`, `there is no field "messages", or none in it`},
		{text.Chat(tok, tmpl), `{"messages": [{"content": "x"}]}`, `a message without the field "role", or it is no string`},
		{text.Chat(tok, tmpl), `{`, `unexpected end of JSON input`},
	} {
		_, _, err := tc.enc([]byte(tc.doc))
		require.EqualError(t, err, tc.want)
	}
}

// Ranks share the counting, and each row is the same on 1, 2 and 3 ranks; a run that goes on with another number of them
// trains on each answer once in an epoch.
func TestNew(t *testing.T) {
	var b strings.Builder
	for i := range 41 {
		fmt.Fprintf(&b, `{"prompt": "%s", "completion": " answer %d"}`+"\n", strings.Repeat("q", i%7), i)
	}
	name := file(t, b.String())
	tok := tokenizer(t)
	want := counts(t, nil, name, tok)
	for _, n := range []int{1, 2, 3} {
		ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
			require.Equal(t, want, counts(t, c, name, tok))
		})
	}
}

// counts is how often each target comes in an epoch whose parts run on 2, 3 and 1 ranks.
func counts(t testing.TB, c *ccl.Comm, name string, tok *bpe.Tokenizer) map[int32]int {
	f, err := text.Open(text.Lines, name)
	require.NoError(t, err)
	defer f.Close()
	set, err := text.New(t.Context(), c, f, text.Completion(tok, 1))
	require.NoError(t, err)
	seen := map[int32]int{}
	for _, packing := range []func([]int, int) (*pack.Packing, error){pack.New, pack.Single} {
		p, err := packing(set.Lengths, 48)
		require.NoError(t, err)
		consumed := 0
		for _, part := range []struct{ size, turns int }{{2, 3}, {3, 2}, {1, p.Rows()}} {
			next := consumed
			for rank := range part.size {
				items, err := data.Sampler{N: p.Rows(), Rank: rank, Size: part.size, Seed: 1}.Epoch(0, consumed)
				require.NoError(t, err)
				turns := 0
				for x, err := range loader.Prefetch(t.Context(), items, 2, func(_ context.Context, row int) (*pack.Row, error) {
					r := &pack.Row{}
					return r, set.Fill(p, row, r)
				}) {
					require.NoError(t, err)
					for _, id := range x.Value.Targets {
						if id >= 0 {
							seen[id]++
						}
					}
					next = x.Consumed
					if turns++; turns == part.turns {
						break
					}
				}
			}
			consumed = next
		}
	}
	q, _, err := text.Plain(tok, -1)([]byte("qqq"))
	require.NoError(t, err)
	for _, id := range q[1:] {
		require.Zero(t, seen[id], "a prompt is no target")
	}
	require.Equal(t, 2*41, seen[1], "each end comes once for each packing")
	return seen
}

// All ranks hear which document of which file is wrong.
func TestNewFails(t *testing.T) {
	good, bad := file(t, `{"text": "x"}`+"\n"), file(t, `{"text": "x"}`+"\n{\n"+`{"text": "x"}`+"\n")
	want := "data/text: " + bad + ", document 2 (from 1): unexpected end of JSON input"
	tok := tokenizer(t)
	f, err := text.Open(text.Lines, good, bad)
	require.NoError(t, err)
	_, err = text.New(t.Context(), nil, f, text.Field(tok, "text", -1))
	require.EqualError(t, err, want)
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		f, err := text.Open(text.Lines, good, bad)
		require.NoError(t, err)
		_, err = text.New(t.Context(), c, f, text.Field(tok, "text", -1))
		require.ErrorContains(t, err, want)
		names := []string{good, bad}[:1+c.Rank()]
		f, err = text.Open(text.Lines, names...)
		require.NoError(t, err)
		_, err = text.New(t.Context(), c, f, text.Field(tok, "text", -1))
		require.ErrorContains(t, err, "documents in files of")
	})
	f, err = text.Open(text.Lines, good)
	require.NoError(t, err)
	_, err = text.New(t.Context(), nil, f, func([]byte) ([]int32, []bool, error) { panic("no idea") })
	require.EqualError(t, err, "data/text: "+good+", document 1 (from 1): panic: no idea")
}

// A file that is written anew, or grows, while it is open is no longer the one that Open has read, wherever its lines
// begin now.
func TestFileChanges(t *testing.T) {
	for _, content := range []string{"", "b\na\n", "a\nb\nc\n"} {
		name := file(t, "a\nb\n")
		f, err := text.Open(text.Lines, name)
		require.NoError(t, err)
		doc, err := f.Doc(1)
		require.NoError(t, err)
		require.Equal(t, "b", string(doc))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o666))
		require.NoError(t, os.Chtimes(name, time.Time{}, time.Unix(1, 0))) // the clock of files may stand still meanwhile
		_, err = f.Doc(1)
		require.EqualError(t, err, "data/text: "+name+", document 2 (from 1): the file was changed or replaced while it was in use")
		require.NoError(t, f.Close())
	}
}

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "text")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "train.jsonl")
	err = os.WriteFile(name, []byte(`{"messages": [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "It is 2."}]}`+"\n"), 0o666)
	if err != nil {
		fmt.Println(err)
		return
	}
	tok, err := bpe.Read("../bpe/testdata/llama3.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	tmpl, err := chat.Parse("{% for m in messages %}{{ m.role }}: {{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := text.Open(text.Lines, name)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	set, err := text.New(ctx, nil, f, text.Chat(tok, tmpl)) // with a Comm in the place of nil, ranks share the work
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := pack.New(set.Lengths, 64)
	if err != nil {
		fmt.Println(err)
		return
	}
	var r pack.Row
	if err := set.Fill(p, 0, &r); err != nil {
		fmt.Println(err)
		return
	}
	answer := slices.DeleteFunc(slices.Clone(r.Targets), func(id int32) bool { return id == pack.Ignored })
	fmt.Printf("%q\n", tok.Decode(r.Tokens[:r.Ends[1]], false))
	fmt.Printf("%q\n", tok.Decode(answer, false))
	// Output:
	// "user: 1+1?<|end|>assistant: It is 2."
	// "It is 2.<|end|>"
}
