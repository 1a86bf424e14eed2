package boot

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccl/goccl/test/cache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A library for C that finds no launcher says that it cannot see what its host program has set, unless it is told that there is
// none. A program of Go says nothing.
func TestWarnUnseen(t *testing.T) {
	alone := Launch{Launcher: "none", Size: 1}
	for _, tc := range []struct {
		name string
		mode string
		l    Launch
		env  map[string]string
		says bool
	}{
		{"c-shared", "c-shared", alone, nil, true},
		{"c-archive", "c-archive", alone, nil, true},
		{"a program", "exe", alone, nil, false},
		{"not known", "", alone, nil, false},
		{"told so", "c-shared", alone, map[string]string{"GOCCL_LAUNCHER": "none"}, false},
		{"a launcher", "c-shared", Launch{Launcher: "slurm", Size: 1}, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := warnings(t)
			warnUnseen(&vars{getenv: func(n string) string { return tc.env[n] }}, tc.l, tc.mode)
			assert.Equal(t, tc.says, bytes.Contains(out.Bytes(), []byte("sees only the environment with which its process was started")), "%s", out)
		})
	}
}

// A host program in C sets RANK and WORLD_SIZE itself and loads the library then: it is told.
func TestLibraryForC(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds Go's own packages with C")
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("needs a C compiler")
	}
	cache.Whole()
	dir := t.TempDir()
	write := func(name, text string) string {
		at := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
		return at
	}
	var clean []string // a variable that is there already is changed in place, where Go sees it
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name != "RANK" && name != "WORLD_SIZE" {
			clean = append(clean, v)
		}
	}
	run := func(dir string, env []string, name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, append(clean, env...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	lib, host := filepath.Join(dir, "lib.so"), filepath.Join(dir, "host")
	source := write("lib.go", `package main

import "C"

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl/boot"
)

//export start
func start() {
	b, err := boot.Env(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("rank %d of %d\\n", b.Rank(), b.Size())
}

func main() {}
`)
	run(".", []string{"CGO_ENABLED=1"}, "go", "build", "-buildmode=c-shared", "-o", lib, source)
	run(".", nil, gcc, "-o", host, write("host.c", `#include <dlfcn.h>
#include <stdlib.h>

int main(int argc, char **argv) {
	setenv("RANK", "1", 1);
	setenv("WORLD_SIZE", "2", 1);
	void *lib = dlopen(argv[1], RTLD_NOW);
	if (!lib) return 1;
	((void (*)(void))dlsym(lib, "start"))();
	return 0;
}
`), "-ldl")
	out := run(dir, nil, host, lib)
	assert.Contains(t, out, "rank 0 of 1")
	assert.Contains(t, out, "this is a library for C (-buildmode=c-shared)")
}
