package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An error says which library, which of its functions, and what the library said.
func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&LibraryError{Library: "NCCL 2.28.9", Call: "ncclAllReduce", Result: 2, Text: "unhandled system error"}, "NCCL 2.28.9: ncclAllReduce: unhandled system error"},
		{&Lacks{Library: "NCCL 2.18.3", Call: "ncclCommWindowRegister", Since: "NCCL 2.27"}, "NCCL 2.18.3 has no ncclCommWindowRegister; that needs NCCL 2.27"},
		{ErrCapturing, "the stream is being captured into a graph: its calls run when the graph is launched"},
		{ErrNotNow, "another stream is being captured into a graph: events cannot be queried"},
	} {
		require.EqualError(t, tc.err, tc.want)
	}
}
