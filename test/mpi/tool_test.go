//go:build mpi

package mpi

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withTool is m with tool.c before its library.
func (m install) withTool(t *testing.T) install {
	m.here(t)
	tool := filepath.Join(t.TempDir(), "libtool.so")
	out, err := exec.Command("cc", "-shared", "-fPIC", "-o", tool, "-I", m.includes(t), "testdata/tool/tool.c",
		"-Wl,--no-as-needed", m.lib).CombinedOutput()
	require.NoError(t, err, string(out))
	m.env = append(m.env[:len(m.env):len(m.env)], "GOCCL_MPI_LIB="+tool)
	return m
}

// TestRefusedTypes has an MPI that now and then refuses to make a type: of large messages that fail no type is left. It is
// Open MPI, since MPICH 4 has functions with wider counts, and needs no types.
func TestRefusedTypes(t *testing.T) {
	program, m := built(t, "test", pkg), installs()[1].withTool(t)
	out, status := m.job(t, 1, []string{"REFUSE=1", "GOCCL_MPI_TEST_REFUSES=1"}, program, "-test.run", "^TestRefusedTypes$")
	require.Zero(t, status, out)
	require.Equal(t, 1, strings.Count(out, "tool: some made, 0 types left, some refused"), out)
}

// TestEndsOnce has a Go program, and a C program with a library in Go, end: the end functions of MPI's library run once.
// A Go program's end does not run them by itself; a C program's does.
func TestEndsOnce(t *testing.T) {
	for _, buildmode := range []string{"exe", "c-shared", "c-archive"} {
		t.Run(buildmode, func(t *testing.T) {
			var program string
			if strings.HasPrefix(buildmode, "c-") {
				part := built(t, "build", "-buildmode", buildmode, "./testdata/hosted/lib")
				program = filepath.Join(t.TempDir(), "host")
				out, err := exec.Command("cc", "-o", program, "testdata/hosted/host.c", part, "-lpthread", "-ldl").CombinedOutput()
				require.NoError(t, err, string(out))
			} else {
				program = built(t, "build", "-buildmode", buildmode, "./testdata/hosted/exe")
			}
			for _, m := range installs()[:2] {
				t.Run(m.name, func(t *testing.T) {
					out, status := m.withTool(t).job(t, 1, nil, program)
					require.Zero(t, status, out)
					require.Equal(t, 1, strings.Count(out, "tool: ended"), out)
				})
			}
		})
	}
}
