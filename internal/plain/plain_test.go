package plain

import (
	"encoding/json"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "",
		"host-1, pid 7":                 "host-1, pid 7",
		"größe 大小 €":                    "größe 大小 €",
		"a\x1b]0;title\a b":             `a\x1b]0;title\a b`,
		"one\ntwo\r\n":                  `one\ntwo\r\n`,
		"nul \x00, delete \x7f":         `nul \x00, delete \x7f`,
		"C1 \u009b31m":                  `C1 \u009b31m`,
		"turned \u202e round, \u2028":   `turned \u202e round, \u2028`,
		"no text \xff\xfe of one \xc3":  `no text \xff\xfe of one \xc3`,
		"what stands for it: \ufffd":    "what stands for it: \ufffd",
		`a backslash \ and 'quotes' ""`: `a backslash \ and 'quotes' ""`,
	} {
		require.Equal(t, want, Text(in), "%q", in)
	}
}

// What is shown already costs nothing.
func TestTextThatIsPlain(t *testing.T) {
	s := "rank 3 of 8 on host-1"
	require.Zero(t, testing.AllocsPerRun(100, func() { Text(s) }))
}

type inner struct {
	Name  string
	names []string // not JSON's, and not touched
}

func TestUnmarshal(t *testing.T) {
	type kind string
	var v struct {
		Text  string
		Kind  kind
		Ptr   *string
		None  *string
		In    inner
		To    *inner
		List  []string
		Deep  [][]inner
		Pair  [2]string
		Map   map[string]inner
		Any   any
		Raw   json.RawMessage
		Bytes []byte
		N     int
	}
	const esc = `\u001b[2J`
	v.In.names = []string{"\x1b"}
	require.NoError(t, Unmarshal([]byte(`{"Text":"`+esc+`","Kind":"`+esc+`","Ptr":"`+esc+`","In":{"Name":"`+esc+`"},"To":{"Name":"`+esc+`"},"List":["a","`+esc+`"],
		"Deep":[[{"Name":"`+esc+`"}]],"Pair":["`+esc+`","b"],"Map":{"`+esc+`":{"Name":"`+esc+`"},"k":{"Name":"w"}},
		"Any":{"`+esc+`":["`+esc+`",1,null,{"x":"`+esc+`"}]},"Raw":"`+esc+`","Bytes":"Gw==","N":7}`), &v))
	const plain = `\x1b[2J`
	require.Equal(t, plain, v.Text)
	require.Equal(t, kind(plain), v.Kind)
	require.Equal(t, plain, *v.Ptr)
	require.Nil(t, v.None)
	require.Equal(t, inner{plain, []string{"\x1b"}}, v.In)
	require.Equal(t, plain, v.To.Name)
	require.Equal(t, []string{"a", plain}, v.List)
	require.Equal(t, plain, v.Deep[0][0].Name)
	require.Equal(t, [2]string{plain, "b"}, v.Pair)
	require.Equal(t, map[string]inner{plain: {Name: plain}, "k": {Name: "w"}}, v.Map)
	require.Equal(t, map[string]any{plain: []any{plain, 1.0, nil, map[string]any{"x": plain}}}, v.Any)
	require.Equal(t, `"`+esc+`"`, string(v.Raw))
	require.Equal(t, []byte{0x1b}, v.Bytes)
	require.Equal(t, 7, v.N)

	var s string
	require.NoError(t, Unmarshal([]byte(`"`+esc+`"`), &s))
	require.Equal(t, plain, s)
	require.Error(t, Unmarshal([]byte(`{"Text":"`+esc+`","N":"x"}`), &v), "a part that was read is plain all the same")
	require.Equal(t, plain, v.Text)
	require.Error(t, Unmarshal([]byte(`1`), nil))
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b[2J\nb\xff")
	f.Add("plain")
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if !utf8.ValidString(got) || Text(got) != got {
			t.Fatalf("%q became %q", s, got)
		}
		for _, r := range got {
			if unicode.IsControl(r) {
				t.Fatalf("%q became %q", s, got)
			}
		}
		var v any
		if Unmarshal([]byte(s), &v) == nil {
			b, err := json.Marshal(v)
			require.NoError(t, err)
			var again any
			require.NoError(t, Unmarshal(b, &again))
		}
	})
}
