//go:build unix

package boot

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/blame"
	"github.com/goccl/goccl/internal/environ"
)

// The pipe is the last of a rank's files, and writing to it never waits; what most ranks named is read in the end.
func TestBlamed(t *testing.T) {
	b := newBlamed()
	require.NotNil(t, b)
	defer b.close()
	for first, before := range [][]*os.File{nil, {os.Stdin}} {
		files, env := b.pass(before, []string{"A=1"})
		require.Equal(t, append(before, b.w), files)
		require.Equal(t, []string{"A=1", environ.BlameFD.Set(blame.Value(3+first, b.inode))}, env)
	}
	_, ok := b.rank(4)
	require.False(t, ok, "nobody has written")
	for _, r := range []int{3, 1, 3} {
		fmt.Fprintln(b.w, r)
	}
	rank, ok := b.rank(4)
	require.True(t, ok)
	require.Equal(t, 3, rank)
	for fd := int(b.w.Fd()); ; { // until it is full
		if _, err := syscall.Write(fd, make([]byte, 4096)); err != nil {
			require.ErrorIs(t, err, syscall.EAGAIN)
			break
		}
	}
	var none *blamed
	files, env := none.pass(nil, nil)
	require.Nil(t, files)
	require.Nil(t, env)
	_, ok = none.rank(4)
	require.False(t, ok)
	none.close()
}

// The rank at fault is the one that the others name, if it has failed by itself; else both are told.
func TestFault(t *testing.T) {
	first, later := &ExitError{Rank: 2, Code: 1, Stopped: 1}, &ExitError{Rank: 1, Code: 5}
	for _, tc := range []struct {
		named  string
		failed []*ExitError
		want   ExitError
		text   string
	}{
		{"", []*ExitError{nil, later, first}, ExitError{Rank: 2, Code: 1, Stopped: 1, Well: 3, Failed: 2}, "rank 2 exited with code 1"},
		{"1\n", []*ExitError{nil, later, first}, ExitError{Rank: 1, Code: 5, Stopped: 1, Well: 3, Failed: 2}, "rank 1 exited with code 5"},
		{"2\n", []*ExitError{nil, later, first}, ExitError{Rank: 2, Code: 1, Stopped: 1, Well: 3, Failed: 2}, "rank 2 exited with code 1"},
		{"0\n", []*ExitError{nil, later, first}, ExitError{Rank: 2, Code: 1, Stopped: 1, Well: 3, Failed: 2, named: 1}, "rank 2 exited with code 1, for which the ranks name rank 0 as the cause"},
	} {
		b := newBlamed()
		require.NotNil(t, b)
		fmt.Fprint(b.w, tc.named)
		cause := *first
		s := &spawn{Command: Command{N: 3}, names: b, again: new(restarts), tally: tally{cause: &cause, failed: tc.failed, well: []bool{true, true, true}}}
		require.Equal(t, &tc.want, s.fault())
		require.EqualError(t, &tc.want, tc.text)
		b.close()
	}
}
