//go:build mpi

package mpi

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// header is one real header, and what gmpi.h calls its family.
type header struct {
	name, file string
	family     int
}

func headers() (all []header) {
	for _, m := range installs() {
		if m.headers != "" {
			all = append(all, header{m.name, filepath.Join(m.headers, "mpi.h"), m.family})
		}
		if m.abi {
			all = append(all, header{m.name + ", standard ABI", filepath.Join(m.headers, "mpi_abi.h"), 2})
		}
	}
	return all
}

// conforms compiles and runs conformance.c against h and the gmpi.h in dir.
func conforms(t *testing.T, h header, dir string) (out string, ok bool) {
	t.Helper()
	if _, err := os.Stat(h.file); err != nil {
		t.Skipf("no header of %s here: %v (Debian: apt-get install libmpich-dev libopenmpi-dev; the others: test/mpi/fetch.sh)", h.name, err)
	}
	program := filepath.Join(t.TempDir(), "conformance")
	args := []string{"-w", "-I", dir, "-I", filepath.Dir(h.file), "-include", h.file, "-DFAMILY=" + strconv.Itoa(h.family), "-o", program, "testdata/conformance.c"}
	if h.family == 1 {
		symbols := filepath.Join(t.TempDir(), "symbols.o")
		out, status := output2(t, nil, "gcc", "-I", dir, "-c", "-o", symbols, "testdata/symbols.c")
		require.Zero(t, status, out)
		args = append(args, symbols)
	}
	if out, status := output2(t, nil, "gcc", args...); status != 0 {
		return out, false
	}
	out, status := output2(t, nil, program)
	return out, status == 0
}

const include = "../../include"

func TestConformance(t *testing.T) {
	for _, h := range headers() {
		t.Run(h.name, func(t *testing.T) {
			out, ok := conforms(t, h, include)
			require.True(t, ok, out)
			require.Contains(t, out, " 0 wrong")
			t.Log(strings.TrimSpace(out))
		})
	}
}

// TestConformanceFails plants errors in a copy of gmpi.h: each must be found.
func TestConformanceFails(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(include, "gmpi.h"))
	require.NoError(t, err)
	for _, tc := range []struct {
		name, old, new string
		want           [3]string // what each family's header finds; "" nothing
	}{
		{"a type of MPICH", "0x4c00040a", "0x4c00040b", [3]string{"MPI_FLOAT is 0x4c00040a here, and 0x4c00040b", "", ""}},
		{"a symbol of Open MPI", "FLOAT, 0x4c00040a, ompi_mpi_float,", "FLOAT, 0x4c00040a, ompi_mpi_double,", [3]string{"", "ompi_mpi_float", ""}},
		{"an operator of the standard", "0x21)", "0x22)", [3]string{"", "", "MPI_SUM is 0x21 here, and 0x22"}},
		{"a number", "COMM_TYPE_SHARED, 1, 0, 221", "COMM_TYPE_SHARED, 2, 1, 222", [3]string{"MPI_COMM_TYPE_SHARED", "MPI_COMM_TYPE_SHARED", "MPI_COMM_TYPE_SHARED"}},
		{"an offset", "MPI_TAG, 12, 4, 4", "MPI_TAG, 16, 8, 8", [3]string{"MPI_TAG", "MPI_TAG", "MPI_TAG"}},
		{"a signature", "Comm_split, (GMPI_COMM, int, int, GMPI_COMM *)", "Comm_split, (GMPI_COMM, int, GMPI_COMM *)", [3]string{"MPI_Comm_split", "MPI_Comm_split", "MPI_Comm_split"}},
		{"a signature of a file", "File_set_size, (GMPI_FILE, GMPI_OFFSET)", "File_set_size, (GMPI_FILE, int)", [3]string{"MPI_File_set_size", "MPI_File_set_size", "MPI_File_set_size"}},
		{"a mode", "MODE_EXCL, 64, 64, 8", "MODE_EXCL, 65, 65, 9", [3]string{"MPI_MODE_EXCL", "MPI_MODE_EXCL", "MPI_MODE_EXCL"}},
		{"a class of the standard", "ERR_UNSUPPORTED_OPERATION, 44, 52, 55", "ERR_UNSUPPORTED_OPERATION, 44, 52, 52", [3]string{"", "", "MPI_ERR_UNSUPPORTED_OPERATION is 0x37 here, and 0x34"}},
		{"a signature in four forms", "(void *, N, GMPI_TYPE, int, GMPI_COMM __VA_ARGS__)", "(void *, N, GMPI_TYPE, N, GMPI_COMM __VA_ARGS__)", [3]string{"MPI_Bcast_c", "", "MPI_Bcast_c"}},
	} {
		require.Equal(t, 1, strings.Count(string(text), tc.old), tc.name)
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "gmpi.h"), []byte(strings.Replace(string(text), tc.old, tc.new, 1)), 0o600))
		for _, h := range headers() {
			t.Run(tc.name+"/"+h.name, func(t *testing.T) {
				out, ok := conforms(t, h, dir)
				want := tc.want[h.family]
				require.Equal(t, want == "", ok, out)
				require.Contains(t, out, want)
			})
		}
	}
}
