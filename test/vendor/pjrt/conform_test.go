package pjrt

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const table = "../../../include/gpjrt.h"

// header is the directory of pjrt_c_api.h.
func header(t *testing.T) string {
	t.Helper()
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("hardware: structs are compared where pointers have 8 bytes")
	}
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no cc (Debian: apt-get install gcc libc6-dev)")
	}
	var stderr strings.Builder
	cmd := exec.Command("./fetch.sh", "header-0.83")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, &stderr)
	return strings.TrimSpace(string(out))
}

// compile compiles conform.c with a table.
func compile(t *testing.T, file string) (said string, ok bool) {
	t.Helper()
	abs, err := filepath.Abs(file)
	require.NoError(t, err)
	out, err := exec.Command("cc", "-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", "-I"+header(t), `-DGPJRT="`+abs+`"`, "conform.c").CombinedOutput()
	return string(out), err == nil
}

func TestConformance(t *testing.T) {
	said, ok := compile(t, table)
	require.True(t, ok, said)
}

// TestPlantedErrors: what conform.c promises to see, it sees.
func TestPlantedErrors(t *testing.T) {
	text, err := os.ReadFile(table)
	require.NoError(t, err)
	for _, tc := range []struct{ right, wrong, want string }{
		{"X(Client_Compile, 20)", "X(Client_Compile, 21)", "the place of Client_Compile"},
		{"X(Buffer_ReadyEvent, 72)", "X(Buffer_ReadyEvents, 72)", "PJRT_Buffer_ReadyEvents"},
		{"GPJRT_F64 = 12", "GPJRT_F64 = 14", "GPJRT_F64 is not"},
		{"GPJRT_EXTENSION_STREAM = 3", "GPJRT_EXTENSION_STREAM = 4", "GPJRT_EXTENSION_STREAM is not"},
		{"enum { GPJRT_STRING, GPJRT_INT64,", "enum { GPJRT_INT64, GPJRT_STRING,", "is not"},
		{"int64_t code, args, results, alias, temp, host[5], peak;", "int64_t code, args, results, alias, temp, host[4], peak;", "gp_stats"},
		{"limit, rest[6];", "limit, rest[5];", "the size of gp_memory"},
		{"void *device, *memory, *layout, *done, *buffer;", "void *memory, *device, *layout, *done, *buffer;", "the place of gp_put.device"},
		{"intptr_t stream;\n\tvoid *buffer, *memory;", "void *buffer, *memory;\n\tintptr_t stream;", "the place of gp_view"},
		{"void **done;\n\tvoid *device;", "void *device;\n\tvoid **done;", "the place of gp_run.done"},
	} {
		t.Run(tc.wrong, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(string(text), tc.right), tc.right)
			file := filepath.Join(t.TempDir(), "gpjrt.h")
			require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), tc.right, tc.wrong, 1)), 0o600))
			said, ok := compile(t, file)
			require.False(t, ok)
			require.Contains(t, said, tc.want)
		})
	}
}
