//go:build cgo && linux

package signals_test

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/dl"
	"github.com/goccl/goccl/internal/signals"
	"github.com/stretchr/testify/require"
)

// thief takes signals when it is loaded, as libinfinipath does.
const thief = `
#include <signal.h>
#include <unistd.h>
static void handler(int s) { _exit(99); }
__attribute__((constructor)) static void take(void) {
	int all[] = {SIGSEGV, SIGBUS, SIGFPE, SIGTERM, SIGUSR1, SIGURG};
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		struct sigaction a = {.sa_handler = handler};
		sigaction(all[i], &a, 0);
	}
	signal(SIGPIPE, SIG_IGN);
	signal(39, SIG_IGN);
}`

// polite takes SIGSEGV and passes on what is not its own, as the Intel GPU driver does, by whose name it goes.
const polite = `
#include <signal.h>
static struct sigaction before;
static int seen;
int polite_seen(void) { return seen; }
static void handler(int s, siginfo_t *i, void *c) { seen++; before.sa_sigaction(s, i, c); }
__attribute__((constructor)) static void take(void) {
	struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	sigaction(SIGSEGV, &a, &before);
}`

// library compiles C and opens it.
func library(t *testing.T, name, source string) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler (Debian: apt-get install gcc libc6-dev)")
	}
	dir := t.TempDir()
	c, so := filepath.Join(dir, "lib.c"), filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(c, []byte(source), 0o600))
	out, err := exec.Command(cc, "-shared", "-fPIC", "-o", so, c).CombinedOutput()
	require.NoError(t, err, "%s", out)
	_, err = dl.Search{What: name, Names: []string{so}}.Open()
	require.NoError(t, err)
}

// fault is a nil dereference, and whether it was recovered.
func fault() (recovered bool) {
	defer func() { recovered = recover() != nil }()
	var p *int
	return *p == 1
}

func TestGuard(t *testing.T) {
	if os.Getenv("GOCCL_TEST_SIGNALS") == "" { // handlers are the whole process's
		t.Setenv("GOCCL_TEST_SIGNALS", "1")
		t.Setenv("GODEBUG", "asyncpreemptoff=1") // the thief ends the process with the first SIGURG that Go sends
		out, err := exec.Command(os.Args[0], "-test.run=^TestGuard$", "-test.v").CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	restore := signals.Guard()
	library(t, "libthief.so", thief)
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2) // Go's own doing in between stays
	want := []int{int(syscall.SIGBUS), int(syscall.SIGFPE), int(syscall.SIGUSR1), int(syscall.SIGSEGV), int(syscall.SIGPIPE), int(syscall.SIGTERM), int(syscall.SIGURG), 39}
	require.ElementsMatch(t, want, restore())
	require.Empty(t, signals.Guard()())

	require.True(t, fault())
	for _, s := range []syscall.Signal{syscall.SIGUSR2, syscall.SIGTERM} {
		signal.Notify(c, s)
		require.NoError(t, syscall.Kill(os.Getpid(), s))
		select {
		case got := <-c:
			require.Equal(t, s, got)
		case <-time.After(10 * time.Second):
			t.Fatalf("%v did not arrive", s)
		}
	}

	restore = signals.Guard()
	library(t, "libze_intel_gpu.so.1", polite)
	require.Equal(t, []int{int(syscall.SIGSEGV)}, restore())
	debug.SetGCPercent(10)
	require.True(t, fault(), "the driver's handler passes on what is not its own")
}
