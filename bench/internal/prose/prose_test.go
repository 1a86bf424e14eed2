package prose

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCount(t *testing.T) {
	require.Equal(t, []string{"0 ranks", "1 rank", "2 ranks"}, []string{Count(0, "rank"), Count(1, "rank"), Count(2, "rank")})
}

func TestWrap(t *testing.T) {
	require.Equal(t, []string{"a bb", "ccc d"}, Wrap("a bb ccc  d", 5))
	require.Equal(t, []string{"toolong", "x"}, Wrap("toolong x", 3))
}

func TestCause(t *testing.T) {
	path := &os.PathError{Op: "open", Path: "x", Err: os.ErrNotExist}
	require.Equal(t, os.ErrNotExist, Cause(fmt.Errorf("again: %w", path)))
	other := errors.New("other")
	require.Equal(t, other, Cause(other))
}
