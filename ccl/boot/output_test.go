package boot

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	long := strings.Repeat("x", maxLine+10)
	for _, tc := range []struct {
		name   string
		writes []string // "0:..." by rank 0 and so on
		want   string
	}{
		{"whole lines", []string{"0:a\n", "1:b\n"}, "[0] a\n[1] b\n"},
		{"several at once", []string{"0:a\nb\n\nc\n"}, "[0] a\n[0] b\n[0] \n[0] c\n"},
		{"pieces", []string{"0:a", "1:b", "0:c\nd", "1:e\n"}, "[0] ac\n[1] be\n[0] d\n"},
		{"no end", []string{"0:a", "1:b\n"}, "[1] b\n[0] a\n"},
		{"a long line", []string{"0:" + long, "0:y\n", "1:z\n"}, "[0] " + long + "y\n[1] z\n"},
		{"a long line broken into", []string{"0:" + long, "1:z\n", "0:y\n"}, "[0] " + long + "\n[1] z\n[0] y\n"},
		{"a long line without end", []string{"0:" + long}, "[0] " + long + "\n"},
		{"nothing", []string{"0:"}, ""},
		{"progress", []string{"0:10 %\r", "0:20 %\r", "0:done\n", "1:b\n"}, "[0] 10 %\r[0] 20 %\r[0] done\n[1] b\n"},
		{"progress from the left", []string{"0:\r10 %", "0:\r20 %", "0: and", "0:\n", "0:x", "0:y\n"}, "[0] \r[0] 10 %\r[0] 20 % and\n[0] xy\n"},
		{"progress broken into", []string{"0:10 %\r", "1:b\n", "0:20 %\r"}, "[0] 10 %\r\n[1] b\n[0] 20 %\r\n"},
		{"two progress", []string{"0:1\r", "1:2\r", "0:3\n"}, "[0] 1\r\n[1] 2\r\n[0] 3\n"},
		{"lines that end in CRLF", []string{"0:a\r\nb\r", "0:\nc\n"}, "[0] a\r\n[0] b\r\n[0] c\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b bytes.Buffer
			var out output
			ranks := []*lines{{out: &out, to: &b, prefix: "[0] "}, {out: &out, to: &b, prefix: "[1] "}}
			for _, w := range tc.writes {
				n, err := ranks[w[0]-'0'].Write([]byte(w[2:]))
				require.NoError(t, err)
				require.Equal(t, len(w)-2, n)
			}
			ranks[0].flush()
			ranks[1].flush()
			require.Equal(t, tc.want, b.String())
		})
	}
}

// What a carriage return has begun is shown at once, not with the next newline.
func TestLinesAreShownAsTheyCome(t *testing.T) {
	var b bytes.Buffer
	l := &lines{out: &output{}, to: &b}
	for _, w := range []struct{ text, want string }{
		{"10 %", ""}, {"\r", "10 %\r"}, {"20 %", "10 %\r20 %"}, {" of 3", "10 %\r20 % of 3"}, {"\n", "10 %\r20 % of 3\n"}, {"next", "10 %\r20 % of 3\n"},
	} {
		_, err := l.Write([]byte(w.text))
		require.NoError(t, err)
		require.Equal(t, w.want, b.String())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestLinesError(t *testing.T) {
	l := &lines{out: &output{}, to: full{}}
	_, err := l.Write([]byte("a"))
	require.NoError(t, err)
	_, err = l.Write([]byte("b\n"))
	require.EqualError(t, err, "full")
}
