package cudart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// versions are those that gdev.h is held against.
var versions = []string{"cuda-12.1.105", "cuda-12.9.79", "cuda-13.5.37", "hip-6.2.0", "hip-7.2.2", "hip-10.0.0"}

const table = "../../../include/gdev.h"

// vendor is a vendor's declarations, ready to be compiled.
type vendor struct {
	flags  []string
	prefix string
	text   string // all that they declare, preprocessed
}

func declarations(t *testing.T, version string) vendor {
	t.Helper()
	dir := fetch(t, version)
	v := vendor{prefix: "cuda"}
	if strings.HasPrefix(version, "hip") {
		v.prefix = "hip"
		header := filepath.Join(t.TempDir(), "hip.h")
		cmd := exec.Command("python3", "pxd.py", table, header)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		v.flags = []string{"-D__HIP_PLATFORM_AMD__", `-DHEADER="` + header + `"`}
		text, err := os.ReadFile(header)
		require.NoError(t, err)
		v.text = string(text)
		return v
	}
	// CUDA 12 has a part of its headers in the compiler's package; 13's will do.
	v.flags = []string{"-DHEADER=<cuda_runtime_api.h>", "-I" + dir + "/include", "-I" + fetch(t, "cuda-13.5.37") + "/include"}
	cmd := exec.Command("cc", append([]string{"-std=gnu11", "-E", "-P", "-x", "c", "-include", "cuda_runtime_api.h", os.DevNull}, v.flags...)...)
	text, err := cmd.Output()
	require.NoError(t, err)
	v.text = string(text)
	return v
}

var row = regexp.MustCompile(`X\([01], [^,]+, (\w+),`)

// compile compiles conform.c with the table in file, and returns what the compiler says and how many functions it has compared.
func (v vendor) compile(t *testing.T, file string) (said string, functions int) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	abs, err := filepath.Abs(file)
	require.NoError(t, err)
	args := append([]string{"-std=gnu11", "-Wall", "-c", "-o", os.DevNull, `-DGDEV="` + abs + `"`}, v.flags...)
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		if regexp.MustCompile(`\b` + v.prefix + m[1] + `(_v\d+)? *\(`).MatchString(v.text) {
			args = append(args, "-DHAVE_"+m[1]+"=1")
			functions++
		}
	}
	out, err := exec.Command("cc", append(args, "conform.c")...).CombinedOutput()
	if err == nil {
		return "", functions
	}
	return string(out), functions
}

func TestConformance(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			said, functions := declarations(t, version).compile(t, table)
			require.Empty(t, said)
			require.GreaterOrEqual(t, functions, 43, "functions of the table that the header declares")
		})
	}
}

// Every mistake in the table is found.
func TestPlantedErrors(t *testing.T) {
	for _, tc := range []struct{ name, right, wrong string }{
		{"parameter's type", "X(1, g_drc, Malloc, (void **, size_t))", "X(1, g_drc, Malloc, (void **, unsigned))"},
		{"parameters' order", "X(1, g_drc, MemsetAsync, (void *, int, size_t, g_stream))", "X(1, g_drc, MemsetAsync, (void *, size_t, int, g_stream))"},
		{"parameter missing", "(g_stream, g_event, unsigned))", "(g_stream, g_event))"},
		{"result", "X(1, const char *, GetErrorName, (g_drc))", "X(1, g_drc, GetErrorName, (g_drc))"},
		{"handle's type", "X(1, g_drc, EventRecord, (g_event, g_stream))", "X(1, g_drc, EventRecord, (g_stream, g_event))"},
		{"name", "X(1, g_drc, StreamQuery, ", "X(1, g_drc, StreamQueries, "},
		{"result's number", "GDEV_NOT_READY = 600", "GDEV_NOT_READY = 601"},
		{"kind of copy", "GDEV_DEVICE_TO_HOST = 2", "GDEV_DEVICE_TO_HOST = 3"},
		{"mode of capture", "GDEV_CAPTURE_RELAXED = 2", "GDEV_CAPTURE_RELAXED = 1"},
		{"size of properties", "#define GDEV_PROP_MAX 8192", "#define GDEV_PROP_MAX 512"},
		{"layout", "int device;\n", "int more_first, device;\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text, err := os.ReadFile(table)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(text), tc.right), "%q in gdev.h", tc.right)
			file := filepath.Join(t.TempDir(), "gdev.h")
			require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), tc.right, tc.wrong, 1)), 0o644))
			for _, version := range []string{"cuda-13.5.37", "hip-10.0.0"} {
				said, _ := declarations(t, version).compile(t, file)
				require.Contains(t, said, "error", fmt.Sprint(version, ": not found"))
			}
		})
	}
}
