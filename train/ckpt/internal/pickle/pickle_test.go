package pickle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What Python 3.13 has written, by each protocol that is read.
func TestRead(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       any
	}{
		{"{'a': [1, 300, 70000, -1], 'b': (None, True, False)}, protocol 2",
			"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01M,\x01Jp\x11\x01\x00J\xff\xff\xff\xffeX\x01\x00\x00\x00bq\x03N\x88\x89\x87q\x04u.",
			&Dict{[]any{"a", "b"}, []any{&List{[]any{int64(1), int64(300), int64(70000), int64(-1)}}, Tuple{nil, true, false}}}},
		{"1 << 40 and -(1 << 40), protocol 2", "\x80\x02\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff\x86q\x00.",
			Tuple{int64(1 << 40), int64(-1 << 40)}},
		{"(b'xy', 1.5, 'é', {2}), protocol 4",
			"\x80\x04\x95\x1c\x00\x00\x00\x00\x00\x00\x00(C\x02xy\x94G?\xf8\x00\x00\x00\x00\x00\x00\x8c\x02\xc3\xa9\x94\x8f\x94(K\x02\x90t\x94.",
			Tuple{[]byte("xy"), 1.5, "é", &List{[]any{int64(2)}}}},
		{"os.system('true'), which nobody calls", "\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R\x94.",
			&Object{Class: &Symbol{"os", "system"}, Args: Tuple{"true"}}},
	} {
		got, err := Read([]byte(tc.text))
		require.NoError(t, err, tc.name)
		require.Equal(t, tc.want, got, tc.name)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"":                     "ends in the middle",
		"\x80\x02N":            "ends in the middle",
		".":                    "nothing is on the stack",
		"(.":                   "a mark in the place of a value",
		"\x80\x06N.":           "protocol 6",
		"X\xff\xff\xff\x7fab.": "ends in the middle",
		"\x8d\xff\xff\xff\xff\xff\xff\xff\xffab.": "ends in the middle",
		"X\x01\x00\x00\x00\xff.":                  "not UTF-8",
		"h\x05.":                                  "has not kept",
		"NNs.":                                    "nothing is on the stack",
		"N]Ns.":                                   "for a <nil>",
		"}(Nu.":                                   "for a *pickle.Dict",
		"t.":                                      "no mark",
		"\x8a\x09123456789.":                      "an int of 9 bytes",
		"I1\n.":                                   "opcode 0x49",
		"cos\nsystem":                             "a name without an end",
		"NN\x93.":                                 "no text",
	} {
		_, err := Read([]byte(text))
		require.ErrorContains(t, err, why, "%q", text)
	}
}

// What Write has written reads as the same.
func TestWrite(t *testing.T) {
	v := &Dict{[]any{"x"}, []any{Tuple{int64(1), int64(1 << 40), true, nil, &List{[]any{"y"}}, &Persistent{Tuple{"storage"}},
		Called("m", "f", "z"), &Object{Class: Named("m", "C"), Args: Tuple{}, State: &Dict{[]any{"k"}, []any{int64(2)}}}}}}
	b, err := Write(nil, v)
	require.NoError(t, err)
	got, err := Read(b)
	require.NoError(t, err)
	require.Equal(t, v, got)
	b, err = Write(nil, Made("m", "C", "k", 2))
	require.NoError(t, err)
	got, err = Read(b)
	require.NoError(t, err)
	require.Equal(t, &Object{Class: Named("m", "C"), Args: Tuple{}, State: &Dict{[]any{"k"}, []any{int64(2)}}}, got)
	_, err = Write(nil, struct{}{})
	require.ErrorContains(t, err, "a struct {}")
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02K\x01au.", "\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93\x94)R}b.", "]q\x00h\x00a.", "((((t."} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := Read(b); err != nil && v != nil {
			t.Errorf("%v beside %v", v, err)
		}
	})
}
