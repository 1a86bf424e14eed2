package same_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/internal/same"
)

// An error that one rank has is of the same kinds on all of them, and has the same text: of whichever rank it is, alone or
// beside another error, wrapped, joined, or told once before.
func TestKinds(t *testing.T) {
	_, missing := os.Open("/none/such")
	own := errors.New("the program's own")
	ask := []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, fs.ErrClosed, os.ErrDeadlineExceeded, context.Canceled,
		context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, errors.ErrUnsupported, syscall.ENOENT, syscall.ENOSPC, syscall.EEXIST,
		syscall.EACCES, ccl.ErrArgument, ccl.ErrAborted, ccl.ErrClosed}
	for name, tc := range map[string]struct {
		bad   error
		is    []error
		errno syscall.Errno
	}{
		"not there":   {missing, []error{fs.ErrNotExist, syscall.ENOENT}, syscall.ENOENT},
		"there":       {&fs.PathError{Op: "mkdir", Path: "x", Err: syscall.EEXIST}, []error{fs.ErrExist, syscall.EEXIST}, syscall.EEXIST},
		"full":        {fmt.Errorf("write: %w", syscall.ENOSPC), []error{syscall.ENOSPC}, syscall.ENOSPC},
		"not allowed": {&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, []error{fs.ErrPermission, syscall.EACCES}, syscall.EACCES},
		"a sentinel":  {fmt.Errorf("x: %w", fs.ErrExist), []error{fs.ErrExist}, 0},
		"two":         {errors.Join(io.ErrUnexpectedEOF, syscall.ENOSPC, context.Canceled), []error{io.ErrUnexpectedEOF, syscall.ENOSPC, context.Canceled}, syscall.ENOSPC},
		"of ccl":      {&ccl.Error{Code: ccl.ErrArgument}, []error{ccl.ErrArgument}, 0},
		"own":         {own, nil, 0},
	} {
		for _, ranks := range [][]int{{0}, {2}, {1, 2}, {0, 1, 2}} {
			t.Run(fmt.Sprint(name, ranks), func(t *testing.T) {
				ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
					var bad error
					mine := false
					for i, r := range ranks {
						if r == c.Rank() {
							mine, bad = true, tc.bad
							if i > 0 && len(ranks) < 3 {
								bad = errors.New("another error, which is not told") // the lowest rank's is
							}
						}
					}
					for _, again := range []bool{false, true} {
						what := "p"
						if again {
							what = "q"
						}
						err := same.Args(t.Context(), c, what, bad)
						for _, a := range ask {
							want := false
							for _, x := range tc.is {
								want = want || x == a
							}
							require.Equal(t, want, errors.Is(err, a), "%v: %v, again %v", err, a, again)
						}
						var errno syscall.Errno
						require.Equal(t, tc.errno != 0, errors.As(err, &errno))
						require.Equal(t, tc.errno, errno)
						told := make([]byte, 400)
						copy(told, err.Error())
						require.NoError(t, ccl.Broadcast(t.Context(), c, told, 0))
						require.Equal(t, string(told[:len(err.Error())]), err.Error())
						if mine && c.Rank() == ranks[0] {
							require.Equal(t, tc.bad == own, errors.Is(err, own), "its rank finds it")
							var path *fs.PathError
							require.Equal(t, errors.As(tc.bad, &path), errors.As(err, &path))
						}
						bad = err // which all have now
					}
				})
			})
		}
	}
}

// What a file has in a name does not reach the terminal as it is.
func TestControlCharacters(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		var bad error
		if c.Rank() == 1 {
			bad = errors.New("tensor \x1b]0;x\x07 é\u009b, and\nanother\x00line")
		}
		require.EqualError(t, same.Args(t.Context(), c, "p", bad), "p: rank 1: tensor \\x1b]0;x\\a é\\u009b, and\nanother\\x00line")
	})
}
