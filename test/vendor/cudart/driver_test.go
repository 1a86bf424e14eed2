package cudart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const driverTable = "../../../include/gcu.h"

// compileDriver holds the driver's table in file against a version's cuda.h, and returns what the compiler says.
func compileDriver(t *testing.T, version, file string) string {
	t.Helper()
	gcu, err := filepath.Abs(file)
	require.NoError(t, err)
	gdev, err := filepath.Abs(table)
	require.NoError(t, err)
	out, err := exec.Command("cc", "-std=gnu11", "-Wall", "-c", "-o", os.DevNull, `-DGCU="`+gcu+`"`, `-DGDEV="`+gdev+`"`,
		"-I"+fetch(t, version)+"/include", "conform_driver.c").CombinedOutput()
	if err == nil {
		return ""
	}
	return string(out)
}

func TestDriverConformance(t *testing.T) {
	for _, version := range []string{"cuda-12.1.105", "cuda-12.9.79", "cuda-13.5.37"} {
		require.Empty(t, compileDriver(t, version, driverTable), version)
	}
	text, err := os.ReadFile(driverTable)
	require.NoError(t, err)
	for right, wrong := range map[string]string{
		"X(u_res, MemFree_v2, (u_ptr))":             "X(u_res, MemFree_v2, (void *))",
		"X(u_res, MemsetD8_v2, (u_ptr, unsigned c":  "X(u_res, MemsetD8_v2, (u_ptr, c",
		"X(u_res, ModuleGetFunction, (u_function *": "X(u_res, ModuleGetFunction, (u_module *",
		"GCU_JIT_ERROR_LOG = 5":                     "GCU_JIT_ERROR_LOG = 3",
		"EventDestroy_v2":                           "EventDestroy_v3",
		"GCU_POINTER_IS_MANAGED = 8":                "GCU_POINTER_IS_MANAGED = 9",
	} {
		require.Equal(t, 1, strings.Count(string(text), right), right)
		file := filepath.Join(t.TempDir(), "gcu.h")
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), right, wrong, 1)), 0o644))
		require.Contains(t, compileDriver(t, "cuda-13.5.37", file), "error", wrong)
	}
}
