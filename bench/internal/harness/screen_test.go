package harness

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
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
