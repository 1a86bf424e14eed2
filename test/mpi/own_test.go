//go:build mpi

package mpi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOwnMPI has a program that initialises and finalises MPI by itself, and uses goccl in between, at each thread
// level: goccl leaves MPI, and the error handlers of World and Self, to it.
func TestOwnMPI(t *testing.T) {
	underEach(t, func(t *testing.T, m install) {
		program := builtWith(t, []string{
			fmt.Sprintf("CGO_CFLAGS=-DSTANDARD=%d -I%s", m.family/2, m.includes(t)),
			"CGO_LDFLAGS=" + m.lib + " -Wl,--allow-shlib-undefined",
		}, "build", "./testdata/own")
		for _, level := range []string{"single", "serialized", "multiple"} {
			out, status := m.job(t, 2, []string{"GOCCL_MPI_TEST_LEVEL=" + level}, program)
			assert.Zero(t, status, level)
			require.Equal(t, 2, strings.Count(out, "MPI was left alone"), "%s: %s", level, out)
		}
	})
}
