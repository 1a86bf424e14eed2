package harness

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/environ"
)

func TestScreen(t *testing.T) {
	var b bytes.Buffer // a terminal that shows all
	s := newScreen(&b)
	table, messages := s.table(&b), s.messages(&b)
	fmt.Fprint(messages, passing+"one\n"+passing+"two\n")
	fmt.Fprint(table, "row\n")
	fmt.Fprint(table, "row\n")
	fmt.Fprint(messages, passing+"three\n")
	fmt.Fprint(messages, "bench: a message\n")
	fmt.Fprint(messages, passing+"four\n")
	s.clear()
	s.clear()
	const gone = "\r\x1b[K"
	require.Equal(t, "one"+gone+"two"+gone+"row\nrow\nthree"+gone+"bench: a message\nfour"+gone, b.String())
}

// Rank 0 knows the screen by what the process with the screen has told it; a file or a pipe is none.
func TestShownOn(t *testing.T) {
	for told, want := range map[string]int{"yes columns=80 terminal": 80, "launcher columns=132 ": 132, "yes terminal": 0, "yes ": 0, "": 0} {
		t.Setenv(environ.BenchParent.Name, told)
		require.Equal(t, want, shownOn(), told)
	}
}
