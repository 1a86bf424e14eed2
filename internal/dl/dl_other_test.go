//go:build !cgo || !unix

package dl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/dl"
)

func TestOpenWithoutCgo(t *testing.T) {
	_, err := dl.Search{What: "C", Names: []string{"libc.so.6", "libc.so"}}.Open()
	require.EqualError(t, err, "C cannot be loaded: libc.so.6: this program was built without cgo, which loading a library needs: build it with CGO_ENABLED=1 and a C compiler")
}
