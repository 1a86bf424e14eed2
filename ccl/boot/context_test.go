package boot

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
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
