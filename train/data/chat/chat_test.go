package chat_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/data/chat"
)

// cases are what test/text/chat.py writes: templates, conversations, and what transformers makes of them.
type cases struct {
	Templates map[string]string
	Cases     []struct {
		Template, Title string
		Messages        []chat.Message
		Tools           json.RawMessage
		Prompt          bool
		Vars            map[string]any
		Text            *string // nil: it refuses
		Spans           json.RawMessage
	}
}

func load(t testing.TB, dir string) (all cases) {
	b, err := os.ReadFile(filepath.Join(dir, "chat.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &all))
	return all
}

// The small set is of this project's templates, in testdata; that of make text has those of the wheel trl, too.
func TestAsTransformers(t *testing.T) {
	dirs := []string{"testdata"}
	if more := os.Getenv("CHAT_TEST_DIR"); more != "" {
		dirs = append(dirs, more)
	}
	for _, dir := range dirs {
		all := load(t, dir)
		parsed := map[string]*chat.Template{}
		for name, src := range all.Templates {
			var err error
			parsed[name], err = chat.Parse(src, nil)
			require.NoError(t, err, name)
		}
		marks := 0
		for _, c := range all.Cases {
			what := fmt.Sprintf("%s, %s, tools %.1s, prompt %v", c.Template, c.Title, c.Tools, c.Prompt)
			if string(c.Tools) == "null" {
				c.Tools = nil
			}
			o := &chat.Options{Prompt: c.Prompt, Tools: c.Tools, Vars: c.Vars, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
			got, err := parsed[c.Template].Render(c.Messages, o)
			if c.Text == nil {
				require.Error(t, err, "%s: transformers refuses it: %s", what, c.Spans)
				continue
			}
			require.NoError(t, err, what)
			require.Equal(t, *c.Text, got, what)
			var spans [][2]int // in characters
			require.NoError(t, json.Unmarshal(c.Spans, &spans))
			if len(spans) == 0 {
				continue
			}
			marks += len(spans)
			runes := []rune(got)
			for i, s := range spans {
				spans[i] = [2]int{len(string(runes[:s[0]])), len(string(runes[:s[1]]))}
			}
			_, mine, err := parsed[c.Template].Answers(c.Messages, o)
			require.NoError(t, err)
			require.Equal(t, spans, mine, what)
		}
		require.Greater(t, marks, 20)
		t.Logf("%s: %d cases of %d templates as transformers, %d marks", dir, len(all.Cases), len(parsed), marks)
	}
}

var talk = []chat.Message{{Role: "user", Content: "Hi"}, {Role: "assistant", Content: "Hello!"}, {Role: "user", Content: "Who?"}, {Role: "assistant", Content: "Me."}}

// Without marks the turns of the assistant are what its messages add.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct{ src, text, want string }{
		{"{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
			"<user>Hi<assistant>Hello!<user>Who?<assistant>Me.", "Hello!|Me."},
		{"{% for m in messages %}{{ m.content }};{% endfor %}", "Hi;Hello!;Who?;Me.;", "Hello!;|Me.;"},
	} {
		tmpl, err := chat.Parse(tc.src, nil)
		require.NoError(t, err)
		text, spans, err := tmpl.Answers(talk, &chat.Options{Prompt: true})
		require.NoError(t, err)
		require.Equal(t, tc.text, text)
		var got []string
		for _, s := range spans {
			got = append(got, text[s[0]:s[1]])
		}
		require.Equal(t, tc.want, strings.Join(got, "|"))
	}
	tmpl, err := chat.Parse("{% for m in messages %}{% if m.role == 'user' or loop.last %}{{ m.content }}{% endif %}{% endfor %}", nil)
	require.NoError(t, err)
	_, _, err = tmpl.Answers(talk, nil)
	require.EqualError(t, err, "chat: the template writes what is before message 1 otherwise when more follows: which text is the assistant's only {% generation %} in the template can say")
	for _, src := range []string{
		"{% macro turn(m) %}{{ m.role }}: {% generation %}{{ m.content }}{% endgeneration %}{% endmacro %}{% for m in messages %}{{ turn(m) }}{% endfor %}",
		"{% for m in messages %}{% set x %}{{ m.role }}: {% generation %}{{ m.content }}{% endgeneration %}{% endset %}{{ x }}{% endfor %}",
	} {
		tmpl, err = chat.Parse(src, nil)
		require.NoError(t, err)
		text, err := tmpl.Render(talk, nil)
		require.NoError(t, err)
		require.Equal(t, "user: Hiassistant: Hello!user: Who?assistant: Me.", text)
		_, _, err = tmpl.Answers(talk, nil)
		require.EqualError(t, err, "chat: {% generation %} is in a macro or a set, so which text it marks cannot be known: move it out")
	}
}

// Filters are Jinja's, and so is what random templates have shown.
func TestFilters(t *testing.T) {
	for src, want := range map[string]string{
		"{{ 'Grün' | reverse }}":                                                                   "nürG",
		"{{ [1, 2] | reverse | list }}":                                                            "[2, 1]",
		"{% for k, v in {'a': 1} | items %}{{ k }}={{ v }}{% endfor %}":                            "a=1",
		"{% for k, v in nope | items %}{{ k }}{% endfor %}":                                        "",
		"{{ ([1] | safe)[0] }}":                                                                    "[",
		"{{ [nope] }}":                                                                             "[Undefined]",
		"{{ nope is sequence }}{{ 3 is sequence }}":                                                "TrueFalse",
		"{% for x in [1, 2] %}{% break %}{% else %}e{% endfor %}":                                  "e",
		"{% for x in [1, 2] %}{% continue %}{% else %}e{% endfor %}":                               "e",
		"{% for x in [1, 2] %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% else %}e{% endfor %}": "12",
	} {
		tmpl, err := chat.Parse(src, nil)
		require.NoError(t, err)
		text, err := tmpl.Render(nil, nil)
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
}

func TestErrors(t *testing.T) {
	const long = "{% set x = 'x' * 2000000 %}"
	for _, tc := range []struct{ src, want string }{
		{"{{ 1", "line 1: a tag that does not end with }}"},
		{"a\n{# x", "line 2: a comment that does not end"},
		{"{{ 'x }}", "line 1: a string that does not end"},
		{"{{ 1 ? 2 }}", "line 1: a '?' that is no operator"},
		{"\n{% if x %}", "line 2: the template ends where elif or else or endif is expected"},
		{"{% include 'x' %}", "line 1: {% include %} is not supported; these are: if, for, set, macro, generation, break, continue"},
		{"{{ x | nope }}", "line 1: the filter nope is not supported; these are: capitalize, count, d, default, first, int, items, join, last, length, list, lower, map, reject, rejectattr, replace, reverse, safe, select, selectattr, string, tojson, trim, upper"},
		{"{{ x is nope }}", "line 1: the test nope is not supported; these are: !=, ==, None, boolean, callable, defined, divisibleby, eq, equalto, even, false, float, ge, gt, in, integer, iterable, le, lt, mapping, ne, none, number, odd, sequence, string, true, undefined"},
		{"{{ }}", `line 1: "" where a value is expected`},
		{"{{ " + strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300) + " }}", "line 1: it is nested more than 200 deep"},
		{strings.Repeat("{% if 1 %}", 300), "line 1: it is nested more than 200 deep"},
		{"{{ 1 +\n x.y }}", "line 2: x is not defined, and has no field y"},
		{"{{ messages[0].nope.x }}", "line 1: nope is not defined, and has no field x"},
		{"{{ nope(1) }}", "line 1: nope is called, and is no function"},
		{"{{ messages.append(1) }}", "line 1: append is called, and is no function"},
		{"{{ ''.__class__ }}{{ ''.__class__.__mro__ }}", "line 1: __class__ is not defined, and has no field __mro__"},
		{"{{ 1 // 0 }}", "line 1: a division by zero"},
		{"{{ 1 + 'x' }}", "line 1: a int + a str is not supported"},
		{"{{ 2 ** 70 }}", "line 1: 2 ** 70 is no integer of 64 bits"},
		{"{% set x.y = 1 %}", "line 1: x.y is set, and x is no namespace"},
		{"{{ raise_exception('No ' ~ messages[0].role) }}", "line 1: the template refuses this: No user"},
		{"{{ 'x' * 100000000 }}", "line 1: the template makes more than 8388608 bytes of text"},
		{"{% set x = 'x' * 5000000 %}{% for i in [1, 2] %}{{ x }}{% endfor %}", "line 1: the template makes more than 8388608 bytes of text"},
		{"{% for i in range(10000000) %}{% endfor %}", "line 1: the template takes more than 2097152 steps"},
		{"{% set l = range(2000) | list %}{% for x in l %}{{ -x in l }}{% endfor %}", "line 1: the template takes more than 2097152 steps"},
		{"{% set n = namespace(l=[1, 1]) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l | tojson }}", "line 1: the template takes more than 2097152 steps"},
		{"{% set n = namespace() %}{% set n.n = n %}{{ n == n.n }}", "line 1: values are nested more than 200 deep"},
		{"{% set n = namespace() %}{% set n.n = n %}{{ n }}", "line 1: values are nested more than 200 deep"},
		{"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "line 1: macros are called more than 100 deep"},
		// What would take hours, or all memory.
		{"{% set n = namespace(x=0) %}{% set r = range(20000) | list %}{% for i in range(300000) %}{% set n.x = [r | list, n.x] %}{% endfor %}", "line 1: the template takes more than 2097152 steps"},
		{long + "{% for i in range(100000) %}{{ x[0] }}{% endfor %}", "line 1: the template takes more than 2097152 steps"},
		{long + "{% for i in range(100000) %}{{ x | length }}{% endfor %}", "line 1: the template takes more than 2097152 steps"},
		{long + "{% for i in range(100000) %}{% if 'y' in x %}{% endif %}{% endfor %}", "line 1: the template takes more than 2097152 steps"},
		{long + "{{ (x ~ 'y').strip(x ~ 'z') }}{% for c in x ~ x %}{% endfor %}", "line 1: the template takes more than 2097152 steps"},
		{long + "{{ range(30) | list | tojson(indent=x) }}", "line 1: the template makes more than 8388608 bytes of text"},
		{long + "{{ range(100000) | join(x) }}", "line 1: the template makes more than 8388608 bytes of text"},
		{long + "{{ x.split('x') }}", "line 1: the template makes more than 8388608 bytes of text"},
		{"{{ 1" + strings.Repeat("+1", 1<<17) + " }}", "the template has 262151 bytes, and 262144 are the most"},
		{"{{ x.y" + strings.Repeat("+1", 1<<17-8) + " }}", "line 1: x is not defined, and has no field y"},
		{"{{ raise_exception(' \x1c\u3000a' | trim) }}", "line 1: the template refuses this: a"},
		{"{{ {[]: 1} }}", "line 1: a key of type list"},
		{"{{ [1][::0] }}", "line 1: a step of 0"},
		{"{{ [1, 'x'] | map('nope') }}", `line 1: map by the filter "nope", which is not supported`},
		{"{{ strftime_now('%Q') }}", "line 1: strftime_now with %Q, which is not supported"},
		{"{{ messages | items }}", "line 1: the items of a list: only a dict has them"},
		{"{{ none | items }}", "line 1: the items of a NoneType: only a dict has them"},
		{"{{ range | tojson }}", "line 1: function is not JSON"},
		{"{{ range }}", "line 1: function is not text"},
	} {
		tmpl, err := chat.Parse(tc.src, nil)
		if err == nil {
			_, err = tmpl.Render(talk, nil)
		}
		require.EqualError(t, err, "chat: "+tc.want, tc.src)
	}
	tmpl, err := chat.Parse("{{ tools }}", nil)
	require.NoError(t, err)
	_, err = tmpl.Render(talk, &chat.Options{Tools: json.RawMessage("[1")})
	require.EqualError(t, err, "chat: tools: it is no JSON")
	text, err := tmpl.Render(talk, &chat.Options{Tools: json.RawMessage("[9223372036854775807, 1e30]")})
	require.NoError(t, err)
	require.Equal(t, "[9223372036854775807, 1e+30]", text)
	_, err = tmpl.Render(talk, &chat.Options{Tools: json.RawMessage("[9223372036854775808]")})
	require.EqualError(t, err, "chat: tools: 9223372036854775808 is no integer of 64 bits")
	_, err = tmpl.Render(talk, &chat.Options{Vars: map[string]any{"f": func() {}}})
	require.EqualError(t, err, "chat: the variable f: json: unsupported type: func()")
}

func TestRead(t *testing.T) {
	write := func(dir, name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666))
	}
	for _, tc := range []struct{ config, jinja, want, err string }{
		{config: `{"chat_template": "{{ bos_token }}a{{ eos_token }}", "bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": null}`, want: "<s>a</s>"},
		{config: `{"bos_token": "<s>"}`, jinja: "{{ bos_token }}b\n", want: "<s>b"},
		{jinja: "c", want: "c"},
		{config: `{"chat_template": [{"name": "rag", "template": "x"}, {"name": "default", "template": "d"}]}`, want: "d"},
		{config: `{"chat_template": [{"name": "rag", "template": "x"}]}`, err: `tokenizer_config.json: chat_template: none of them has the name "default"`},
		{config: `{"chat_template": 1}`, err: "tokenizer_config.json: chat_template: json: cannot unmarshal number"},
		{config: `{`, err: "tokenizer_config.json: unexpected end of JSON input"},
		{config: `{}`, err: "has neither a chat_template.jinja nor a tokenizer_config.json with the field chat_template"},
		{jinja: "{{", err: "chat_template.jinja: line 1: a tag that does not end"},
	} {
		dir := t.TempDir()
		if tc.config != "" {
			write(dir, "tokenizer_config.json", tc.config)
		}
		if tc.jinja != "" {
			write(dir, "chat_template.jinja", tc.jinja)
		}
		tmpl, err := chat.Read(dir)
		if tc.err != "" {
			require.ErrorContains(t, err, tc.err)
			continue
		}
		require.NoError(t, err)
		text, err := tmpl.Render(nil, nil)
		require.NoError(t, err)
		require.Equal(t, tc.want, text)
	}
}

// Whatever a template says, it is an error or a text; and the same one each time.
func FuzzRender(f *testing.F) {
	for _, src := range load(f, "testdata").Templates {
		f.Add(src, "Hi")
	}
	f.Add("{{ messages[0]['content'][1:] | default(x) }}{% set a, b = (1, 2) %}", "é")
	f.Fuzz(func(t *testing.T, src, content string) {
		if strings.Contains(src, "range") || strings.Count(src, "for") > 3 { // within its bounds, but slow
			return
		}
		tmpl, err := chat.Parse(src, nil)
		if err != nil {
			return
		}
		messages := []chat.Message{{Role: "user", Content: content}, {Role: "assistant", Content: content}}
		text, err := tmpl.Render(messages, &chat.Options{Now: time.Unix(0, 0)})
		again, err2 := tmpl.Render(messages, &chat.Options{Now: time.Unix(0, 0)})
		require.Equal(t, err == nil, err2 == nil)
		require.Equal(t, text, again)
		_, spans, err := tmpl.Answers(messages, &chat.Options{Now: time.Unix(0, 0)})
		for _, s := range spans {
			require.NoError(t, err)
			require.LessOrEqual(t, s[0], s[1])
		}
	})
}

func Example() {
	tmpl, err := chat.Parse("{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}",
		map[string]string{"bos_token": "<s>"})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := tmpl.Render([]chat.Message{{Role: "user", Content: "How are you? "}}, &chat.Options{Prompt: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q\n", text)
	// Output: "<s>[user] How are you?\n[assistant]"
}

// What is set in a loop, a macro or a block stays there. Where it is set behind a loop or a macro that reads it, it is
// undefined before that, as in Jinja, though a is a variable of the template. The texts are those of jinja2 3.1.6.
func TestScopes(t *testing.T) {
	for _, tc := range []struct{ template, want string }{
		{`{% for i in [1, 2] %}{{ a }}{% set a = i %}{% endfor %}{{ a }}`, "555"},
		{`{% for i in [1, 2] %}{{ a }}{% endfor %}{% set a = 3 %}{{ a }}`, "3"},
		{`{{ a }}{% for i in [1, 2] %}{{ a }}{% endfor %}{% set a = 3 %}{{ a }}`, "5553"},
		{`{% for i in [1, 2] %}{{ a }}{% endfor %}{% if a %}{% set a = 3 %}{% endif %}{{ a }}`, "553"},
		{`{% for i in [1, 2] %}{% for k in [1] %}{{ a }}{% endfor %}{% set a = i %}{{ a }}{% endfor %}`, "12"},
		{`{% for i in [1, 2] %}{% for k in [1] %}{{ a }}{% endfor %}{% set a = i %}{% endfor %}{{ a }}`, "555"},
		{`{% macro m() %}{{ a }}{% endmacro %}{{ m() }}{% set a = 3 %}{{ m() }}`, "3"},
		{`{% macro m(a) %}{{ a }}{% set a = 3 %}{{ a }}{% endmacro %}{{ m(7) }}{{ a }}`, "735"},
		{`{% for i in [] %}{% else %}{% set a = 3 %}{{ a }}{% endfor %}{{ a }}`, "35"},
		{`{% set n = namespace(a=1) %}{% for i in [1, 2] %}{{ n.a }}{% set n.a = i + 5 %}{% endfor %}{{ n.a }}{{ a }}`, "1675"},
		{`{% for i in [1] %}{{ a }}{% endfor %}{% set a %}x{% endset %}{{ a }}`, "x"},
		{`{% set b %}{{ a }}{% set a = 3 %}{{ a }}{% endset %}{{ b }}{{ a }}`, "535"},
		{`{% generation %}{{ a }}{% set a = 3 %}{{ a }}{% endgeneration %}{{ a }}`, "535"},
		{`{% for a in [1] if a %}{{ a }}{% endfor %}{% set a = 3 %}{{ a }}`, "13"},
	} {
		p, err := chat.Parse(tc.template, nil)
		require.NoError(t, err)
		got, err := p.Render(nil, &chat.Options{Vars: map[string]any{"a": 5}})
		require.NoError(t, err, tc.template)
		require.Equal(t, tc.want, got, tc.template)
	}
}
