package imports

import (
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const (
	lineMost = 120 // characters of a line; a tab is one
	textMost = 40  // of a text in it, which may be longer than the line: a message is found by its words
)

// A line outside tests and generated files fits a screen. A text may make one longer, and so may a row of a table or of C in a comment.
func TestLines(t *testing.T) {
	require.Equal(t, []int{2}, longLines("package p\n// "+strings.Repeat("x ", lineMost)+"\nvar s = \""+strings.Repeat("x", lineMost)+"\"\n"))
	var bad []string
	require.NoError(t, sources(os.DirFS("../.."), ".", func(name string, text []byte) error {
		for _, i := range longLines(string(text)) {
			bad = append(bad, fmt.Sprintf("%s:%d", name, i))
		}
		return nil
	}))
	require.Empty(t, bad, "break these lines before column %d", lineMost)
}

// longLines are the numbers of lines that are too long.
func longLines(src string) (long []int) {
	texts := map[int]bool{}
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, []byte(src), nil, scanner.ScanComments)
	for pos, tok, lit := s.Scan(); tok != token.EOF; pos, tok, lit = s.Scan() {
		if tok == token.STRING && utf8.RuneCountInString(lit) > textMost || strings.HasPrefix(lit, "/*") {
			for i := range 1 + strings.Count(lit, "\n") {
				texts[file.Line(pos)+i] = true
			}
		}
	}
	for i, line := range strings.Split(src, "\n") {
		if utf8.RuneCountInString(line) > lineMost && !texts[i+1] && !strings.HasPrefix(line, "//\t") && !isC(line) {
			long = append(long, i+1)
		}
	}
	return long
}

// isC reports whether a line of a comment ends as one of C does.
func isC(line string) bool {
	return strings.HasPrefix(line, "//") && strings.ContainsAny(line[len(line)-1:], ";{})")
}
