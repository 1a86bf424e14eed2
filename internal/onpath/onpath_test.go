package onpath_test

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/onpath"
)

// noSecret is that of a job which has none.
var noSecret, _ = auth.None(nil)

// What goes by without a secret is changed, in the direction that was asked for; the handshake is passed on.
func TestPath(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		defer c.Close()
		s, _, err := auth.Server(c, "job", noSecret, func([]byte) ([]byte, error) { return []byte("welcome"), nil })
		if err == nil {
			_, err = io.Copy(s, struct{ io.Reader }{s})
		}
		served <- err
	}()
	p, err := onpath.To(l.Addr().String(), func(x onpath.Piece) []byte {
		if x.Up && string(x.Hello) == "hello" {
			return bytes.ToUpper(x.Bytes)
		}
		return x.Bytes
	})
	require.NoError(t, err)
	defer p.Close()
	c, err := net.Dial("tcp", p.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	s, reply, err := auth.Client(c, "job", noSecret, []byte("hello"))
	require.NoError(t, err)
	require.Equal(t, "welcome", string(reply))
	_, err = s.Write([]byte("again"))
	require.NoError(t, err)
	require.NoError(t, s.CloseWrite())
	got, err := io.ReadAll(s)
	require.NoError(t, err)
	require.Equal(t, "AGAIN", string(got))
	require.NoError(t, <-served)
}
