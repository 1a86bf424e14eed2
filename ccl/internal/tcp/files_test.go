package tcp

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplain(t *testing.T) {
	require.NoError(t, explain(nil))
	require.Equal(t, io.EOF, explain(io.EOF))
	err := explain(fmt.Errorf("accept: %w", syscall.EMFILE))
	require.ErrorIs(t, err, syscall.EMFILE)
	require.ErrorContains(t, err, "fewer ranks per process")
	require.True(t, outOfFiles(err))
	require.False(t, outOfFiles(errors.New("another")))
}
