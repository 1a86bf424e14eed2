//go:build !(nvml && linux && cgo)

package nvml

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadNone(t *testing.T) {
	_, err := Read()
	require.EqualError(t, err, "nvml: this program was built without NVML; build it with -tags nvml, on Linux, with cgo")
}
