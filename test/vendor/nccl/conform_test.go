package nccl

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const table = "../../../include/gccl.h"

// versions are those that gccl.h is held against: what ncclGetVersion says, and how many functions of the table they have.
var versions = []struct {
	name, code string
	functions  int
}{
	{"nccl-2.18.3", "21803", 21},
	{"nccl-2.23.4", "22304", 26},
	{"nccl-2.27.3", "22703", 29},
	{"nccl-2.28.9", "22809", 33},
	{"nccl-2.30.7", "23007", 34},
	{"nccl-2.32.3", "23203", 34},
	{"rocm-7.2.2", "", 32},
	{"rocm-10.0.0", "", 35},
	{"rccl-5.4.3", "21304", 21},
	{"rccl-7.2.4", "22707", 32},
}

// gone is fetch.sh's exit status where a package is no longer to be had.
const gone = 3

// fetch is the directory that a package's fetch.sh prints.
func fetch(t *testing.T, script, name string) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("hardware: the vendors' wheels that are pinned are for linux/amd64")
	}
	for _, need := range []struct{ command, packages string }{{"python3", "python3-pip"}, {"cc", "gcc libc6-dev"}, {"apt-get", "apt"}} {
		if need.command == "apt-get" && !strings.HasPrefix(name, "rccl") {
			continue
		}
		if _, err := exec.LookPath(need.command); err != nil {
			t.Skipf("no %s (Debian: apt-get install %s)", need.command, need.packages)
		}
	}
	var stderr strings.Builder
	cmd := exec.Command(script, name)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if e := (*exec.ExitError)(nil); errors.As(err, &e) && e.ExitCode() == gone {
		t.Skipf("hardware: NOT RUN: %s", strings.TrimSpace(stderr.String()))
	}
	require.NoError(t, err, "%s %s: %s", script, name, &stderr)
	return strings.TrimSpace(string(out))
}

// vendor is a vendor's declarations, ready to be compiled.
type vendor struct {
	flags []string
	text  string // all that they declare, preprocessed
}

func declarations(t *testing.T, version string) vendor {
	t.Helper()
	dir := fetch(t, "./fetch.sh", version)
	if strings.HasPrefix(version, "rocm") {
		header := filepath.Join(t.TempDir(), "rccl.h")
		cmd := exec.Command("python3", "pxd.py", header)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		text, err := os.ReadFile(header)
		require.NoError(t, err)
		return vendor{[]string{"-D__HIP_PLATFORM_AMD__", `-DHEADER="` + header + `"`}, string(text)}
	}
	header, v := "nccl.h", vendor{flags: []string{"-I" + dir + "/include"}}
	if strings.HasPrefix(version, "rccl") {
		header = "rccl/rccl.h"
		v.flags = append(v.flags, "-D__HIP_PLATFORM_AMD__", "-DRCCL")
	} else {
		v.flags = append(v.flags, "-I"+fetch(t, "../cudart/fetch.sh", "cuda-13.5.37")+"/include")
	}
	v.flags = append(v.flags, "-DHEADER=<"+header+">")
	cmd := exec.Command("cc", append([]string{"-std=gnu11", "-E", "-P", "-x", "c", "-include", header, os.DevNull}, v.flags...)...)
	text, err := cmd.Output()
	require.NoError(t, err)
	v.text = string(text)
	return v
}

var row = regexp.MustCompile(`X\([01], [^,]+, (\w+),`)

// compile compiles conform.c with the table in file and runs it. It returns what either says and how many functions were compared.
func (v vendor) compile(t *testing.T, file string) (said string, functions int, ok bool) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	abs, err := filepath.Abs(file)
	require.NoError(t, err)
	binary := filepath.Join(t.TempDir(), "conform")
	args := append([]string{"-std=gnu11", "-Wno-cpp", "-Wno-deprecated-declarations", "-o", binary, `-DGCCL="` + abs + `"`}, v.flags...)
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		if regexp.MustCompile(`\bnccl` + m[1] + `\s*\(`).MatchString(v.text) {
			args = append(args, "-DHAVE_"+m[1]+"=1")
			functions++
		}
	}
	out, err := exec.Command("cc", append(args, "conform.c")...).CombinedOutput()
	if err != nil {
		return string(out), functions, false
	}
	out, err = exec.Command(binary).CombinedOutput()
	return strings.TrimSpace(string(out)), functions, err == nil
}

func TestConformance(t *testing.T) {
	for _, version := range versions {
		t.Run(version.name, func(t *testing.T) {
			said, functions, ok := declarations(t, version.name).compile(t, table)
			require.True(t, ok, said)
			require.Equal(t, version.functions, functions, "functions compared")
			if version.code != "" {
				require.Equal(t, version.code, said)
			}
		})
	}
}

// TestExports: the libraries export the functions of the table that their headers declare, and no others.
func TestExports(t *testing.T) {
	text, err := os.ReadFile(table)
	require.NoError(t, err)
	for _, version := range versions {
		if strings.HasPrefix(version.name, "rocm") {
			continue // declarations alone
		}
		t.Run(version.name, func(t *testing.T) {
			found, err := filepath.Glob(filepath.Join(fetch(t, "./fetch.sh", version.name), "lib", "lib[nr]ccl.so.[0-9]"))
			require.NoError(t, err)
			require.Len(t, found, 1)
			library, err := elf.Open(found[0])
			require.NoError(t, err)
			defer library.Close()
			symbols, err := library.DynamicSymbols()
			require.NoError(t, err)
			exported := map[string]bool{}
			for _, s := range symbols {
				if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
					exported[s.Name] = true
				}
			}
			declared := declarations(t, version.name).text
			functions := 0
			for _, m := range row.FindAllStringSubmatch(string(text), -1) {
				name := "nccl" + m[1]
				require.Equal(t, regexp.MustCompile(`\b`+name+`\s*\(`).MatchString(declared), exported[name], name)
				if exported[name] {
					functions++
				}
			}
			require.Equal(t, version.functions, functions)
		})
	}
}

// TestPlantedErrors: what conform.c promises to see, it sees.
func TestPlantedErrors(t *testing.T) {
	text, err := os.ReadFile(table)
	require.NoError(t, err)
	v := declarations(t, "nccl-2.28.9")
	for _, tc := range []struct{ right, wrong, want string }{
		{"X(1, g_res, Reduce, (const void *, void *, size_t, g_dtype, g_op, int,", "X(1, g_res, Reduce, (const void *, void *, size_t, g_dtype, int, int,", "signature of ncclReduce"},
		{"X(1, g_res, Send, (const void *, size_t,", "X(1, g_res, Send, (const void *, int,", "signature of ncclSend"},
		{"X(1, g_res, GetVersion,", "X(1, g_res, GetWersion,", "no ncclGetWersion"},
		{"(g_comm, void *, size_t, g_win *, int)", "(g_comm, void *, g_win *, size_t, int)", "signature of ncclCommWindowRegister"},
		{"#define GCCL_WIN_COLL_SYMMETRIC 1", "#define GCCL_WIN_COLL_SYMMETRIC 2", "GCCL_WIN_COLL_SYMMETRIC is not"},
		{"GCCL_MAX, GCCL_MIN,", "GCCL_MIN, GCCL_MAX,", "GCCL_MAX is not ncclMax"},
		{"GCCL_INT8, GCCL_UINT8, GCCL_INT32,", "GCCL_INT8, GCCL_UINT8, GCCL_INT16, GCCL_INT32,", "is not"},
		{"const char *netName;\n\tint splitShare,", "int splitShare;\n\tconst char *netName;\n\tint traffic,", "the place of netName"},
		{"0xcafebeefu", "0xcafebeeeu", "magic"},
		{"unsigned magic, version;", "unsigned long magic; unsigned version;", "the size of magic"},
	} {
		t.Run(tc.wrong, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(string(text), tc.right), tc.right)
			file := filepath.Join(t.TempDir(), "gccl.h")
			require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), tc.right, tc.wrong, 1)), 0o600))
			said, _, ok := v.compile(t, file)
			require.False(t, ok)
			require.Contains(t, said, tc.want)
		})
	}
}
