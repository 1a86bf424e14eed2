package auth_test

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// slow is a connection of a process that was paused before some of its reads: the deadline has passed when they begin.
type slow struct {
	net.Conn
	reads    []string // "": the deadline has passed
	deadline time.Time
}

func (s *slow) SetDeadline(t time.Time) error { s.deadline = t; return nil }

func (s *slow) Read(b []byte) (int, error) {
	if len(s.reads) == 0 {
		return 0, io.EOF
	}
	r := s.reads[0]
	s.reads = s.reads[1:]
	if r == "" {
		return 0, os.ErrDeadlineExceeded
	}
	return copy(b, r), nil
}

func TestAwait(t *testing.T) {
	for _, c := range []struct {
		name  string
		reads []string
		want  error
	}{
		{"at once", []string{"ab"}, nil},
		{"in two parts", []string{"a", "b"}, nil},
		{"paused", []string{"", "ab"}, nil},
		{"paused between", []string{"a", "", "b"}, nil},
		{"gone", []string{""}, io.EOF},
		{"gone between", []string{"a"}, io.ErrUnexpectedEOF},
		{"silent", []string{"", "", "", "", "", "ab"}, os.ErrDeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, b := &slow{reads: c.reads}, make([]byte, 2)
			err := auth.Await(s, b, time.Second)
			require.ErrorIs(t, err, c.want)
			if c.want == nil {
				require.NoError(t, err)
				require.Equal(t, "ab", string(b))
				require.True(t, s.deadline.IsZero())
			}
		})
	}
}

// A peer that says nothing is given up in bounded time.
func TestAwaitOfASilentPeer(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	require.ErrorIs(t, auth.Await(a, make([]byte, 1), 10*time.Millisecond), os.ErrDeadlineExceeded)
}
