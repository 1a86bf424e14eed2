package main_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/test/cache"
	"github.com/stretchr/testify/require"
)

// program is bench as built for these tests, and hello is examples/hello.
var program, hello string

func TestMain(m *testing.M) {
	flag.Parse()
	if worker := flag.Lookup("test.fuzzworker"); worker.Value.String() == "true" {
		os.Exit(m.Run()) // fuzzing starts many processes, and needs none of the programs
	}
	dir, err := os.MkdirTemp("", "bench-test-")
	if err != nil {
		panic(err)
	}
	ext := ""
	if runtime.GOOS == "windows" {
		ext = ".exe"
	}
	program, hello = filepath.Join(dir, "bench"+ext), filepath.Join(dir, "hello"+ext)
	status := 1
	if build(program, ".") && build(hello, "../examples/hello") {
		status = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(status)
}

// build builds a program with these tags, and with cgo if there are any.
func build(out, pkg string, tags ...string) bool {
	cache.Whole()
	cmd := exec.Command("go", "build", "-tags", strings.Join(tags, ","), "-o", out, pkg)
	if len(tags) > 0 {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	b, err := cmd.CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "go build %s: %v\n%s", pkg, err, b)
	}
	return err == nil
}

// bench runs it under no launcher but what env says.
func bench(t *testing.T, env []string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	return started(t, env, program, args...)
}

// well is what it prints where all is.
func well(t *testing.T, env []string, args ...string) string {
	t.Helper()
	out, errs, status := bench(t, env, args...)
	require.Zero(t, status, errs)
	return out
}

// started runs a program in the same way.
func started(t *testing.T, env []string, file string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), file, args...)
	cmd.Env = append(clean(), env...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// clean is the environment without what a launcher of the tests may have set.
func clean() (env []string) {
	launchers := regexp.MustCompile(`^(GOCCL_|PMI|PALS_|OMPI_|SLURM_|RANK=|WORLD_SIZE=|LOCAL_|MASTER_|TORCHELASTIC_)`)
	for _, e := range os.Environ() {
		if !launchers.MatchString(e) {
			env = append(env, e)
		}
	}
	return env
}

func TestBadInput(t *testing.T) {
	for _, tc := range []struct {
		args string
		env  []string
		want string // in the one line on standard error
	}{
		{"-op allredcue", nil, "did you mean allreduce?"},
		{"-d flaot", nil, "did you mean float?"},
		{"-o sun", nil, "did you mean sum?"},
		{"-b 12x", nil, "-b 12x: a size is a number with an optional K, M or G, such as 64K"},
		{"-b 2K -e 1K", nil, "swap them?"},
		{"-f 1", nil, "-f 1: it must be at least 2"},
		{"-e 99999999999G", nil, "larger than this machine's integers"},
		{"-np 0", nil, "-np 0: "},
		{"-np -1", nil, "-np -1: "},
		{"-np 1000000", nil, "-np 1000000: "},
		{"-np 2 -r 2", nil, "-r 2: there are 2 ranks"},
		{"-np 2 -hosts 3", nil, "-hosts 3: "},
		{"-Q", nil, "-Q: no such flag"},
		{"-np 2 -G 2", nil, "-G 2: a graph is captured from a device's stream"},
		{"-J /no/such/directory/x.json", nil, "cannot be written"},
		{"", []string{"RANK=3", "WORLD_SIZE=2"}, "WORLD_SIZE=2"},
		{"", []string{"RANK=0"}, "WORLD_SIZE"},
		{"", []string{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "RANK=1", "WORLD_SIZE=3"}, "GOCCL_LAUNCHER"},
		{"launch -np 2", nil, "it needs a program"},
		{"compar a b", nil, "did you mean bench compare?"},
		{"allredcue", nil, "did you mean -op allreduce?"},
		{"-hmtl x", nil, "did you mean -html?"},
		{"-max-p9 3us", nil, "did you mean -max-p99?"},
		{"-plan zero4", nil, "did you mean zero1?"},
		{"-sizes 8,gpt2-xk", nil, "did you mean gpt2-xl?"},
		{"-backend ncll", nil, "did you mean nccl?"},
		{"-split nod", nil, "groups are node (a host each)"},
		{"-mem devcie", nil, "did you mean device?"},
		{"plan -insid 3,1", nil, "did you mean -inside?"},
		{"-for ever", nil, "a time is a number and a unit"},
		{"help nonsense", nil, "bench: help nonsense: no such command; there are ab compare plan trace doctor launch help version\n"},
		{"help comapre", nil, "bench: help comapre: no such command; did you mean compare? There are ab "},
	} {
		t.Run(tc.args+strings.Join(tc.env, " "), func(t *testing.T) {
			out, errs, status := bench(t, tc.env, strings.Fields(tc.args)...)
			require.Equal(t, 2, status)
			require.Empty(t, out)
			require.Contains(t, errs, tc.want)
			require.Equal(t, 1, strings.Count(errs, "\n"), errs)
			require.True(t, strings.HasPrefix(errs, "bench"), errs)
		})
	}
}

func TestHelp(t *testing.T) {
	out, errs, status := bench(t, nil, "-h")
	require.Zero(t, status)
	require.Empty(t, errs)
	require.Contains(t, out, "Examples:")

	for args, want := range map[string]string{
		"help":         "Flags, the most used:",
		"help all":     "  -peer-timeout T ",
		"-h all":       "  -peer-timeout T ",
		"help launch":  "bench launch runs a program as several ranks",
		"help compare": "bench compare",
		"help version": "Flags, the most used:",
		"version":      "bench of goccl 0.",
		"-np 2 --help": "Flags, the most used:",
	} {
		out := well(t, nil, strings.Fields(args)...)
		require.Contains(t, out, want, args)
	}
}

var row = regexp.MustCompile(`(?m)^ *(\d+) +(\d+) +(\w+) +(\w+) +(-?\d+)(?: +[\d.e+]+){2} +(?:[\d.e+]+|n/a) +(\d+|N/A)(?: +[\d.e+]+){2} +(?:[\d.e+]+|n/a) +(\d+|N/A)(?:  .*)?$`)

func TestRuns(t *testing.T) {
	for i, tc := range []struct {
		args string
		rows int
		want []string
	}{
		{"-np 1 -e 1K", 8, []string{"# ranks: 1 ", "     n/a       0"}},
		{"-np 2", 24, []string{"# ranks: 2 ", "    67108864      16777216     float     sum      -1 "}},
		{"-np 3 -e 1K -op all", 8 + 8*6 + 8*3 - 6, nil},
		{"-np 2 -hosts 2 -e 4K", 10, []string{"hosts: 2", "TCP"}},
		{"-np 2 -t 2 -e 4K -v", 10, []string{"# ranks: 4 ", "nThread 2 nGpus 1 "}},
		{"-np 1 -t 4 -e 1K -hosts 2", 8, []string{"# ranks: 4 ", "hosts: 2"}},
		{"-np 2 -e 1K -b 1K -m 5 -n 3 -op allreduce,sendrecv", 2, []string{"agg iters: 5", "\n# sendrecv\n"}},
		{"-np 2 -e 1K -b 1K -c 0", 1, []string{"     N/A"}},
		{"-np 2 -e 1K -b 1K -d all -o all -a 3", 14 * 5, nil},
		{"-np 2 -e 1K -b 1K -d half,f8e4m3 -o mulsum", 1, []string{"# allreduce f8e4m3 mulsum: not supported: "}},
		{"-np 2 -b 64 -e 64 -op broadcast -r all", 2, nil},
		{"-np 9 -split mod:2 -op allgather -e 1K", 7, []string{"# Groups of 4 to 5 ranks: sizes, times and busbw are those of the groups with 5, as rank 0's\n", "        1020            51 "}},
		{"-np 3 -split mod:2 -op broadcast -r all -b 1K -e 1K", 2, nil},
		{"-np 3 -hosts 2 -split node -op allgather -b 64 -e 1K", 5, []string{"# Groups of 1 to 2 ranks"}},
		{"-np 2 -op barrier -d all", 1, []string{"           0             0      none    none      -1 "}},
	} {
		t.Run(tc.args, func(t *testing.T) {
			if testing.Short() && tc.rows == 24 {
				t.Skip("-short: 64 MiB")
			}
			// A call of 64 MiB may wait for 10 s beside many other programs, which is no error.
			args := strings.Fields(tc.args)
			if testing.Short() && i > 0 && !strings.Contains(tc.args, "-n ") {
				args = append(args, "-n", "3", "-w", "1")
			}
			out, errs, status := bench(t, []string{"GOCCL_STALL_WARN=0"}, args...)
			require.Zero(t, status, "%s%s", out, errs)
			require.Empty(t, errs)
			if !strings.Contains(tc.args, "-op all ") && !strings.HasSuffix(tc.args, "-op all") {
				require.Len(t, row.FindAllString(out, -1), tc.rows, out)
			} else {
				require.GreaterOrEqual(t, len(row.FindAllString(out, -1)), 60, out)
			}
			require.Contains(t, out, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : ")
			for _, want := range tc.want {
				require.Contains(t, out, want)
			}
		})
	}
}

// Why ranks do not find each other is said by the rank that knows, in GOCCL_BOOT_TIMEOUT, also where it is the only one.
func TestWhyRanksDoNotMeet(t *testing.T) {
	for where, want := range map[string]string{
		"GOCCL_ROOT=no-such-host.invalid:4000": "set GOCCL_ROOT=ADDRESS:PORT",
		"GOCCL_ROOT=127.0.0.1:1":               "connection refused",
		"GOCCL_STORE=/no/such/directory":       "the shared directory does not exist",
	} {
		t.Run(where, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(where, "127") {
				t.Skip("it says so in other words there")
			}
			t.Parallel()
			start := time.Now()
			out, errs, status := bench(t, []string{"GOCCL_RANK=1", "GOCCL_SIZE=2", "GOCCL_BOOT_TIMEOUT=1s", where}, "-e", "64")
			require.Equal(t, 1, status)
			require.Empty(t, out)
			require.Contains(t, errs, want)
			require.Equal(t, 1, strings.Count(errs, "\n"), errs)
			require.Less(t, time.Since(start), 40*time.Second, "bench's own limit is longer")
		})
	}
}

// A table that nobody can be shown ends the run: a full disk is named, and a reader that has gone away wants no message.
func TestTableCannotBeWritten(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("needs /dev/full")
	}
	defer full.Close()
	reader, pipe, err := os.Pipe()
	require.NoError(t, err)
	reader.Close()
	defer pipe.Close()
	for _, tc := range []struct {
		to   *os.File
		want string
	}{{full, "bench: the table cannot be written: no space left on device; all ranks have ended\n"}, {pipe, ""}} {
		var errs strings.Builder
		cmd := exec.CommandContext(t.Context(), program, "-np", "2", "-e", "64")
		cmd.Env, cmd.Stdout, cmd.Stderr = clean(), tc.to, &errs
		require.Error(t, cmd.Run())
		require.Equal(t, 1, cmd.ProcessState.ExitCode(), errs.String())
		require.Equal(t, tc.want, errs.String())
	}
}

// A command whose answer could not be written has failed.
func TestAnswerCannotBeWritten(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("hardware: no /dev/full")
	}
	defer full.Close()
	dir := t.TempDir()
	for _, name := range []string{"old", "new"} {
		well(t, nil, "-np", "2", "-e", "64", "-J", filepath.Join(dir, name))
	}
	for _, args := range []string{"compare old new", "plan -inside 1.5,100 -nodes 1", "doctor -np 1", "doctor -np 2 -json", "-h", "-h all", "version"} {
		var errs strings.Builder
		cmd := exec.CommandContext(t.Context(), program, strings.Fields(args)...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, clean(), full, &errs
		require.Error(t, cmd.Run(), args)
		require.Equal(t, 1, cmd.ProcessState.ExitCode(), "%s: %s", args, errs.String())
		require.Equal(t, "bench: standard output cannot be written: no space left on device\n", errs.String(), args)
	}
}

// A run in which there was nothing to measure has failed.
func TestNothingMeasured(t *testing.T) {
	_, errs, status := bench(t, nil, "-np", "2", "-d", "f8e4m3", "-o", "mulsum", "-e", "64")
	require.Equal(t, 1, status)
	require.Equal(t, "bench: nothing was measured: the backend supports none of allreduce f8e4m3 mulsum\n", errs)
}

func TestLaunch(t *testing.T) {
	out := well(t, nil, "launch", "-np", "3", "-hosts", "2", "--", hello)
	for _, want := range []string{"rank 0 of 3", "rank 1 of 3", "rank 2 of 3", "the ranks add up to 3"} {
		require.Contains(t, out, want)
	}
}
