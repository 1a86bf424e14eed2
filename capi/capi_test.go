//go:build unix

package main

import (
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// built is a directory with libgoccl.so, which go build makes once.
var built = struct {
	once sync.Once
	dir  string
	err  error
	out  []byte
}{}

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(built.dir)
	os.Exit(code)
}

// library is the path of libgoccl.so.
func library(t *testing.T) string {
	if testing.Short() {
		t.Skip("-short: builds the library with C")
	}
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("needs a C compiler")
	}
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "goccl-capi-"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", filepath.Join(built.dir, "libgoccl.so"), ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
		built.out, built.err = cmd.CombinedOutput()
	})
	require.NoError(t, built.err, "%s", built.out)
	return filepath.Join(built.dir, "libgoccl.so")
}

// compile makes a program of a file in testdata.
func compile(t *testing.T, source string, flags ...string) string {
	prog := filepath.Join(t.TempDir(), strings.TrimSuffix(source, ".c"))
	args := append([]string{"-Wall", "-Werror", "-g", "-I", "../include", "-o", prog, filepath.Join("testdata", source)}, flags...)
	out, err := exec.Command("cc", append(args, "-lpthread", "-ldl")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return prog
}

// clean is the environment without what a launcher has set.
func clean(env ...string) (list []string) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if name != "RANK" && name != "WORLD_SIZE" && !strings.HasPrefix(name, "LOCAL_") && !strings.HasPrefix(name, "MASTER_") {
			list = append(list, v)
		}
	}
	return append(list, env...)
}

// checked are the ways in which the programs are built: plainly, and so that each access of their own memory is looked at.
var checked = []struct {
	name  string
	flags []string
	env   []string
}{
	{"plain", nil, nil},
	{"asan", []string{"-fsanitize=address"}, []string{"ASAN_OPTIONS=detect_leaks=0:handle_segv=0"}},
}

// The program of the documents: two ranks in threads of one process, over a store of its own.
func TestSum(t *testing.T) {
	lib := library(t)
	for _, way := range checked {
		t.Run(way.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), compile(t, "sum.c", append(way.flags, lib, "-Wl,-rpath,"+filepath.Dir(lib))...))
			cmd.Env = clean(way.env...)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, string(out), "rank 0: 2 4 6 1, and 1 from the other\n")
			assert.Contains(t, string(out), "rank 1: 2 4 6 1, and 0 from the other\n")
		})
	}
}

// A host program that loads the library late: its environment, its signals, its mistakes, its failures.
func TestHost(t *testing.T) {
	lib := library(t)
	for _, way := range checked {
		t.Run(way.name, func(t *testing.T) {
			cmd := exec.Command(compile(t, "host.c", way.flags...), lib, freePort(t))
			cmd.Env = clean(append(way.env, "GOCCL_LOG=quiet", "GOCCL_SECRET=a secret of this test alone")...)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Empty(t, string(out))
		})
	}
}

// freePort is a port of this host that is free, below those that the kernel gives to programs that ask for any (32768 and more on
// Linux): one of these would soon be somebody else's.
func freePort(t *testing.T) string {
	for range 100 {
		port := strconv.Itoa(15_000 + rand.IntN(15_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
	require.Fail(t, "100 ports are taken")
	return ""
}

// The functions that the library exports have the types that the header gives them; const is C's own affair.
func TestHeader(t *testing.T) {
	lib := library(t)
	source := filepath.Join(t.TempDir(), "both.c")
	require.NoError(t, os.WriteFile(source, []byte("#include <stddef.h>\n#include <stdint.h>\n#define const\n#include \"libgoccl.h\"\n#undef GOCCL_TYPES_ONLY\n"+
		"#include \"goccl.h\"\n"), 0o600))
	out, err := exec.Command("cc", "-Wall", "-Werror", "-fsyntax-only", "-I", filepath.Dir(lib), "-I", "../include", source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	declared := names(t, "../include/goccl.h")
	exported := names(t, strings.TrimSuffix(lib, ".so")+".h")
	require.NotEmpty(t, declared)
	for name := range declared {
		assert.True(t, exported[name], "%s is declared, and not exported", name)
	}
	for name := range exported {
		assert.True(t, declared[name], "%s is exported, and not declared", name)
	}
	cxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("needs g++")
	}
	out, err = exec.Command(cxx, "-Wall", "-Werror", "-fsyntax-only", "-x", "c++", "../include/goccl.h").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// names are the functions of a header.
func names(t *testing.T, file string) map[string]bool {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	found := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "//") || strings.HasPrefix(line, "static") || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "\t") {
			continue
		}
		head, _, ok := strings.Cut(line, "(")
		if i := strings.LastIndexAny(head, " *"); ok && i > 0 && strings.HasPrefix(head[i+1:], "goccl_") {
			found[head[i+1:]] = true
		}
	}
	return found
}
