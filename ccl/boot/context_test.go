package boot

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// A nil context is refused, and panics nowhere.
func TestNoContext(t *testing.T) {
	var none context.Context
	_, env := Env(none)
	_, file := File(none, t.TempDir(), "job", 0, 1)
	_, tcp := TCP(none, "127.0.0.1:0", 0, 1, nil)
	b := Local(1)[0]
	defer b.Close()
	_, gather := b.AllGather(none, nil)
	for name, err := range map[string]error{"Env": env, "File": file, "TCP": tcp, "AllGather": gather, "Spawn": Spawn(none, Command{N: 1, Path: "true"})} {
		var e *Error
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, Argument, e.Code, name)
		require.ErrorContains(t, err, "the context is nil", name)
	}
	_, err := b.AllGather(t.Context(), []byte("x"))
	require.NoError(t, err, "nothing has come of it")
}

// A call that has its answer when it is canceled returns it: the others have theirs, and go on.
func TestAnsweredAndCanceled(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // a select with both takes either
		here, there := auth.Pipe()
		in := make(chan frame, 1)
		in <- frame{kind: frameTable, data: tableFrame([][]byte{[]byte("a"), []byte("b")})[frameHead:]}
		go there.Drain()
		b := &Boot{rank: 1, size: 2, conn: here, in: in}
		values, err := b.AllGather(canceled, []byte("b"))
		require.NoError(t, err)
		require.Equal(t, [][]byte{[]byte("a"), []byte("b")}, values)
		here.Close()
		there.Close()
	}
}
