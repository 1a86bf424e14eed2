package empi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/boot"
)

const (
	leabra = "github.com/emer/leabra@v1.2.10"
	tools  = "golang.org/x/tools@v0.44.0" // the version that leabra names is not for today's Go

	glHeaders  = "#include <X11/Xlib.h>\n#include <X11/Xcursor/Xcursor.h>\n#include <X11/extensions/XInput2.h>\n#include <X11/extensions/Xinerama.h>\n#include <X11/extensions/Xrandr.h>\n#include <X11/extensions/xf86vmode.h>\n#include <GL/gl.h>\n"
	glPackages = "gcc libc6-dev libx11-dev libxcursor-dev libxi-dev libxinerama-dev libxrandr-dev libxxf86vm-dev libgl-dev"
)

// TestLeabra trains a network of leabra's on two ranks, its source untouched: over goccl by one line in go.mod, and over
// the real empi and Open MPI. It must learn the same, to the last digit of its logs.
func TestLeabra(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds leabra, which takes minutes")
	}
	cc := exec.Command("cc", "-E", "-x", "c", "-")
	cc.Stdin = strings.NewReader(glHeaders)
	need(t, cc.Run() == nil, "C compiler, or headers of X11 and GL", glPackages)

	source := download(t, leabra)
	shim, err := filepath.Abs("shim")
	require.NoError(t, err)
	goccl, err := filepath.Abs("../..")
	require.NoError(t, err)
	replaced := []string{"-replace=github.com/emer/empi=" + shim, "-replace=github.com/goccl/goccl=" + goccl}

	overGoccl := build(t, source, "", replaced...)
	got := trained(t, source, func(dir string) {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		err := boot.Spawn(ctx, boot.Command{N: 2, Path: overGoccl, Args: flags, Dir: dir, Stdout: &out, Stderr: &out})
		require.NoError(t, err, &out)
		require.Contains(t, out.String(), onTwo)
	})
	require.Greater(t, strings.Count(got, "\n"), 10, got)

	t.Run("empi", func(t *testing.T) {
		needOpenMPI(t)
		overMPI := build(t, source, "mpi", "-require=github.com/emer/empi@v1.0.22")
		want := trained(t, source, func(dir string) {
			require.Contains(t, mpirun(t, dir, nil, append([]string{overMPI}, flags...)...), onTwo)
		})
		require.Equal(t, want, got)
	})
	t.Run("mpirun", func(t *testing.T) {
		needOpenMPI(t)
		for _, program := range []string{overGoccl, build(t, source, "mpi", replaced...)} {
			require.Equal(t, got, trained(t, source, func(dir string) {
				require.Contains(t, mpirun(t, dir, nil, append([]string{program}, flags...)...), onTwo)
			}))
		}
	})
	// The shim's tests for tables need the headers, too.
	t.Run("tables", func(t *testing.T) {
		cgo := []string{"CGO_ENABLED=1"}
		run(t, shim, cgo, "go", "vet", "./...")
		run(t, shim, cgo, "go", "test", "./empi")
	})
}

const onTwo = "MPI running on 2 procs"

var flags = []string{"-mpi", "-runs", "1"}

// download is the folder of a module's source.
func download(t *testing.T, module string) string {
	t.Helper()
	var m struct{ Dir string }
	require.NoError(t, json.Unmarshal([]byte(run(t, t.TempDir(), nil, "go", "mod", "download", "-json", module)), &m))
	return m.Dir
}

// build is leabra's examples/mpi, with edits to its go.mod. It calls rand.Seed, which in a module of Go 1.24 or later has an
// effect only with randseednop=0.
func build(t *testing.T, source, tags string, edits ...string) string {
	t.Helper()
	dir := t.TempDir()
	mod, binary := filepath.Join(dir, "go.mod"), filepath.Join(dir, "ra25")
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(source, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	run(t, dir, nil, "go", append(append([]string{"mod", "edit", "-go=1.25.0", "-godebug=randseednop=0", "-require=" + tools}, edits...), mod)...)
	run(t, source, []string{"CGO_ENABLED=1"}, "go", "build", "-mod=mod", "-modfile="+mod, "-tags", tags, "-o", binary, "./examples/mpi")
	return binary
}

// trained is what a run logs of each epoch, and at its end.
func trained(t *testing.T, source string, simulate func(dir string)) string {
	t.Helper()
	dir := t.TempDir()
	patterns, err := os.ReadFile(filepath.Join(source, "examples/mpi/random_5x5_24.tsv"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "random_5x5_24.tsv"), patterns, 0o644))
	simulate(dir)
	epochs, err := os.ReadFile(filepath.Join(dir, "RA25_Base_epc.tsv"))
	require.NoError(t, err)
	summary, err := os.ReadFile(filepath.Join(dir, "RA25_Base_run.tsv"))
	require.NoError(t, err)
	var log strings.Builder
	for line := range strings.Lines(string(epochs)) {
		columns := strings.Split(line, "\t")
		require.Greater(t, len(columns), 8, line)
		columns[7] = "" // PerTrlMSec: how long it took
		log.WriteString(strings.Join(columns, "\t"))
	}
	return log.String() + string(summary)
}
