//go:build unix

package main

import (
	"debug/elf"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/cache"
	"github.com/goccl/goccl/test/program"
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
		t.Skip("hardware: no cc here")
	}
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "goccl-capi-"); built.err != nil {
			return
		}
		cache.Whole()
		here, _ := os.Getwd()
		spaced := filepath.Join(built.dir, "a checkout")
		if built.err = os.Symlink(filepath.Dir(here), spaced); built.err != nil {
			return
		}
		build := exec.Command(filepath.Join(spaced, "capi/build.sh"), filepath.Join(built.dir, "libgoccl.so.1"))
		built.out, built.err = build.CombinedOutput()
	})
	require.NoError(t, built.err, "%s", built.out)
	return filepath.Join(built.dir, "libgoccl.so.1")
}

// compile makes a program of a file in testdata.
func compile(t *testing.T, source string, flags ...string) string {
	prog := filepath.Join(t.TempDir(), strings.TrimSuffix(source, ".c"))
	args := append([]string{"-Wall", "-Werror", "-g", "-o", prog, filepath.Join("testdata", source)}, flags...)
	out, err := exec.Command("cc", append(args, "-I", "../include", "-lpthread", "-ldl")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return prog
}

// clean is the environment without what a launcher has set.
func clean(env ...string) (list []string) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		launched := strings.HasPrefix(name, "LOCAL_") || strings.HasPrefix(name, "MASTER_")
		if name != "RANK" && name != "WORLD_SIZE" && !launched {
			list = append(list, v)
		}
	}
	return append(list, env...)
}

// checked are the ways in which the programs are built: plainly, and so that each access of their own memory is
// looked at.
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
			prog := compile(t, "sum.c", append(way.flags, lib, "-Wl,-rpath,"+filepath.Dir(lib))...)
			cmd := exec.CommandContext(t.Context(), prog)
			cmd.Env = clean(way.env...)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, string(out), "rank 0: 2 4 6 1, and 1 from the other\n")
			assert.Contains(t, string(out), "rank 1: 2 4 6 1, and 0 from the other\n")
		})
	}
}

// outside is an interface of this host by which others reach it, "" if there is none.
func outside() string {
	all, _ := net.Interfaces()
	for _, i := range all {
		if addrs, _ := i.Addrs(); i.Flags&(net.FlagUp|net.FlagLoopback) == net.FlagUp && len(addrs) > 0 {
			return "=" + i.Name
		}
	}
	return ""
}

// A job that C starts has the secret of the environment, with goccl_open and goccl_open_later alike: its two ranks, as
// of two hosts, encrypt their data with it. Without one they are refused where one is required, and by GOCCL_WIRE; else
// there is one warning.
func TestSecret(t *testing.T) {
	lib := library(t)
	flags := []string{lib, "-Wl,-rpath," + filepath.Dir(lib), `-DHOST=(me ? "h1" : "h0")`}
	progs := map[string]string{
		"goccl_open":       compile(t, "sum.c", flags...),
		"goccl_open_later": compile(t, "sum.c", append(flags, "-Dgoccl_open=goccl_open_later")...),
	}
	const open = "this job has no secret"
	const secret, required = "GOCCL_SECRET=a secret of this test alone", "GOCCL_REQUIRE_SECRET=1"
	for _, tc := range []struct {
		name string
		env  []string
		says string
		fine bool
	}{
		{"with a secret", []string{secret, required, "GOCCL_WIRE=encrypt"}, "", true},
		{"without, on loopback", []string{"GOCCL_SECRET=", "GOCCL_SOCKET_IFNAME=lo"}, "", true},
		{"without", []string{"GOCCL_SECRET=", "GOCCL_SOCKET_IFNAME=" + outside()}, open, outside() != ""},
		{"required", []string{"GOCCL_SECRET=", required}, "GOCCL_REQUIRE_SECRET=1, but the job has no secret", false},
		{"without, encrypted", []string{"GOCCL_SECRET=", "GOCCL_WIRE=encrypt"},
			"GOCCL_WIRE)=encrypt, but the job has no secret", false},
		{"a weak one", []string{"GOCCL_SECRET=short"}, "GOCCL_SECRET: it holds 5 bytes", false},
	} {
		for how, prog := range progs {
			t.Run(how+", "+tc.name, func(t *testing.T) {
				if tc.name == "without" && !tc.fine {
					t.Skip("hardware: no other host reaches this one")
				}
				cmd := exec.CommandContext(t.Context(), prog)
				cmd.Env = clean(tc.env...)
				out, err := cmd.CombinedOutput()
				require.Equal(t, tc.fine, err == nil, "%s", out)
				assert.Contains(t, string(out), tc.says)
				if tc.fine {
					assert.Contains(t, string(out), "rank 0: 2 4 6 1, and 1 from the other\n")
					assert.Equal(t, tc.says != "", strings.Contains(string(out), open), "%s", out)
				}
			})
		}
	}
}

// Two processes with a secret each do not become one job, on two hosts or one, with goccl_open and goccl_open_later
// alike.
func TestAnotherSecret(t *testing.T) {
	lib := library(t)
	for _, how := range []string{"goccl_open", "goccl_open_later"} {
		for _, host := range []string{`(me ? "h1" : "h0")`, `"h0"`} {
			prog := compile(t, "rank.c", lib, "-Wl,-rpath,"+filepath.Dir(lib), "-Dgoccl_open="+how, "-DHOST="+host)
			for _, other := range []string{"a secret of somebody else", "a secret of this test alone"} {
				t.Run(how+", "+host+", "+other, func(t *testing.T) {
					dir := t.TempDir()
					var out [2][]byte
					var errs [2]error
					var both sync.WaitGroup
					for r, secret := range []string{"a secret of this test alone", other} {
						both.Go(func() {
							cmd := exec.CommandContext(t.Context(), prog, dir, strconv.Itoa(r))
							cmd.Env = clean("GOCCL_SECRET="+secret, "GOCCL_LOG=quiet")
							out[r], errs[r] = cmd.CombinedOutput()
						})
					}
					both.Wait()
					for r := range out {
						if other == "a secret of this test alone" {
							assert.NoError(t, errs[r], "%s", out[r])
							assert.Equal(t, "2\n", string(out[r]))
							continue
						}
						assert.Error(t, errs[r])
						assert.Contains(t, string(out[r]),
							"the job's secret differs; give all ranks the same GOCCL_SECRET or GOCCL_SECRET_FILE")
					}
				})
			}
		}
	}
}

// A spare has the place of a rank that ends, and one that is not needed is told so.
func TestSpares(t *testing.T) {
	lib := library(t)
	prog := compile(t, "spares.c", lib, "-Wl,-rpath,"+filepath.Dir(lib))
	dir := t.TempDir()
	var all sync.WaitGroup
	var codes [5]int
	for r := range codes {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), prog, dir, strconv.Itoa(r))
			cmd.Env = clean("GOCCL_LOG=quiet", "GOCCL_SECRET=a secret of this test alone")
			out, _ := cmd.CombinedOutput()
			assert.Empty(t, string(out))
			codes[r] = cmd.ProcessState.ExitCode()
		})
	}
	all.Wait()
	assert.Equal(t, []int{0, 9, 0}, codes[:3])
	assert.ElementsMatch(t, []int{0, 3}, codes[3:])
}

// A host program that loads the library late: its environment, its signals, its mistakes, its failures.
func TestHost(t *testing.T) {
	lib := library(t)
	for _, way := range checked {
		t.Run(way.name, func(t *testing.T) {
			cmd := exec.Command(compile(t, "host.c", way.flags...), lib, program.FreePort(t))
			cmd.Env = clean(append(way.env, "GOCCL_LOG=quiet", "GOCCL_SECRET=a secret of this test alone")...)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Empty(t, string(out))
		})
	}
}

// A program that was started alone prints its own line and no warning: the library sees what the
// program has set. And *err is of this call, and of none before.
func TestAlone(t *testing.T) {
	lib := library(t)
	for _, way := range checked {
		t.Run(way.name, func(t *testing.T) {
			cmd := exec.Command(compile(t, "alone.c", append(way.flags, lib, "-Wl,-rpath,"+filepath.Dir(lib))...))
			cmd.Env = clean(way.env...)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Regexp(t, `^rank 0 of 1 \(.*\)\n$`, string(out))
		})
	}
}

// pair runs a program as two ranks, which print what is wrong.
func pair(t *testing.T, source string, flags ...string) {
	lib := library(t)
	for _, way := range checked {
		t.Run(way.name, func(t *testing.T) {
			linked := slices.Concat(flags, way.flags, []string{lib, "-Wl,-rpath," + filepath.Dir(lib)})
			prog, dir := compile(t, source, linked...), t.TempDir()
			var both sync.WaitGroup
			for _, rank := range []string{"0", "1"} {
				both.Go(func() {
					cmd := exec.CommandContext(t.Context(), prog)
					cmd.Env = clean(append(way.env, "GOCCL_RANK="+rank, "GOCCL_SIZE=2", "GOCCL_STORE="+dir, "GOCCL_LOG=quiet")...)
					out, err := cmd.CombinedOutput()
					assert.NoError(t, err, "rank %s", rank)
					assert.Empty(t, string(out))
				})
			}
			both.Wait()
		})
	}
}

// Garbage in the fields of goccl_args that have no meaning for a kind changes nothing.
func TestIgnored(t *testing.T) { pair(t, "ignored.c") }

// What is misused is refused at once, and the Comm is good afterwards.
func TestMisuse(t *testing.T) { pair(t, "misuse.c") }

// A forked child gets an error from each function, and does not hang in Go, whose threads it has not.
func TestForkedChild(t *testing.T) {
	lib := library(t)
	for _, way := range checked {
		t.Run(way.name, func(t *testing.T) {
			cmd := exec.Command(compile(t, "fork.c", append(way.flags, lib, "-Wl,-rpath,"+filepath.Dir(lib))...))
			cmd.Env = clean(append(way.env, "GOCCL_LAUNCHER=none", "GOCCL_LOG=quiet")...)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Empty(t, string(out))
		})
	}
}

// Ranks that were forked from one process before they have loaded the library read each other's memory, and not their
// own at the same address.
func TestSiblings(t *testing.T) {
	lib := library(t)
	cmd := exec.CommandContext(t.Context(), compile(t, "siblings.c"), lib, t.TempDir())
	cmd.Env = clean("GOCCL_LOG=quiet")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Empty(t, string(out))
}

// runs has a program print nothing, and end well.
func runs(t *testing.T, prog, lib string) {
	cmd := exec.CommandContext(t.Context(), prog)
	cmd.Env = clean("GOCCL_LAUNCHER=none", "GOCCL_LOG=quiet", "LD_LIBRARY_PATH="+filepath.Dir(lib))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Empty(t, string(out))
}

// A program works with the library of another version of the header: an earlier one, which has the structs of ABI 2,
// and a later one.
func TestOtherVersions(t *testing.T) {
	lib := library(t)
	t.Run("earlier", func(t *testing.T) {
		for _, source := range []string{"ignored.c", "misuse.c"} {
			pair(t, source, "-I", filepath.Join("testdata", "abi2"))
		}
	})
	t.Run("later", func(t *testing.T) { runs(t, compile(t, "grown.c", lib), lib) })
}

// install.sh puts things where pkg-config says they are, and a program that is built by it finds the library by its
// SONAME.
func TestInstall(t *testing.T) {
	library(t)
	if _, err := exec.LookPath("pkg-config"); err != nil {
		t.Skip("hardware: no pkg-config here")
	}
	root := t.TempDir()
	cmd := exec.Command("./install.sh", "/opt/goccl")
	cmd.Env = append(os.Environ(), "DESTDIR="+root)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd = exec.Command("pkg-config", "--cflags", "--libs", "goccl")
	cmd.Env = append(os.Environ(), "PKG_CONFIG_SYSROOT_DIR="+root, "PKG_CONFIG_PATH="+root+"/opt/goccl/lib/pkgconfig")
	out, err = cmd.Output()
	require.NoError(t, err)
	prog := filepath.Join(root, "grown")
	flags := append([]string{"-o", prog, "testdata/grown.c"}, strings.Fields(string(out))...)
	out, err = exec.Command("cc", flags...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	runs(t, prog, root+"/opt/goccl/lib/libgoccl.so.1")
}

// The library exports the functions of the header, each with the ABI that it came with, and nothing else. It needs libc
// alone.
func TestExports(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("hardware: libraries of other systems have no versions of symbols")
	}
	f, err := elf.Open(library(t))
	require.NoError(t, err)
	defer f.Close()
	soname, err := f.DynString(elf.DT_SONAME)
	require.NoError(t, err)
	assert.Equal(t, []string{"libgoccl.so.1"}, soname)
	needed, err := f.ImportedLibraries()
	require.NoError(t, err)
	for _, name := range needed {
		assert.Regexp(t, `^(libc|libpthread|libdl|libresolv|ld-linux.*)\.so\.[0-9]$`, name)
	}
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	exported := map[string]string{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			exported[s.Name] = s.Version
		}
	}
	text, err := os.ReadFile("../include/goccl.h")
	require.NoError(t, err)
	for _, name := range functions(t, "../include/goccl.h") {
		want := "1"
		before, _, _ := strings.Cut(string(text), " "+name+"(goccl_comm")
		comment := before[strings.LastIndex(before, ";\n")+1:]
		if since := regexp.MustCompile(`Since ABI (\d)`).FindStringSubmatch(comment); since != nil {
			want = since[1]
		}
		assert.Equal(t, "GOCCL_"+want, exported[name], name)
		delete(exported, name)
	}
	assert.Empty(t, exported)
}

// The library has the functions of the header, which is C and C++. That it has no others, and that their types are
// those, is what the compiler says of enter.c.
func TestHeader(t *testing.T) {
	lib := library(t)
	source := filepath.Join(t.TempDir(), "all.c")
	text := "#include \"goccl.h\"\nvoid *all[] = {\n"
	for _, name := range functions(t, "../include/goccl.h") {
		text += name + ",\n"
	}
	require.NoError(t, os.WriteFile(source, []byte(text+"};\nint main(void) { return 0; }\n"), 0o600))
	prog := strings.TrimSuffix(source, ".c")
	out, err := exec.Command("cc", "-Wall", "-Werror", "-I", "../include", "-o", prog, source, lib).CombinedOutput()
	require.NoError(t, err, "%s", out)
	cxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("hardware: no g++ here")
	}
	flags := []string{"-Wall", "-Werror", "-fsyntax-only", "-x", "c++", "../include/goccl.h"}
	out, err = exec.Command(cxx, flags...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// functions are those that a header declares.
func functions(t *testing.T, file string) (found []string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^\w.*?[ *](goccl_\w+)\(.*\);$`).FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	require.Greater(t, len(found), 15)
	return found
}
