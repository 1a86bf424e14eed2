package cache

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Wheels returns the directory of Python packages, which it fetches once: args are those of pip
// install. In a short run, or without Python, it skips the test, which fails instead where
// GOCCL_REQUIRE is all.
func Wheels(tb testing.TB, size, name string, args ...string) string {
	tb.Helper()
	if testing.Short() {
		tb.Skipf("-short: fetches %s of Python's packages", size)
	}
	dir, err := Dir(name, func(dir string) error { return install(tb, dir, args) })
	switch {
	case err == nil:
	case os.Getenv("GOCCL_REQUIRE") == "all":
		tb.Fatal(err)
	default:
		tb.Skip("NOT RUN: ", err)
	}
	return dir
}

// Python is what python3 prints that is given the packages of a directory of Wheels, args, and stdin.
func Python(tb testing.TB, packages, stdin string, args ...string) []byte {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "python3", args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stdin = strings.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("python3 %q: %v\n%s", args, err, &stderr)
	}
	return out
}

// install tries three times: registries have bad moments.
func install(tb testing.TB, dir string, args []string) error {
	if _, err := exec.LookPath("python3"); err != nil {
		return fmt.Errorf("no python3 (Debian: apt-get install python3-pip): %w", err)
	}
	for attempt := 1; ; attempt++ {
		cmd := exec.CommandContext(tb.Context(), "python3",
			append([]string{"-m", "pip", "install", "-q", "--disable-pip-version-check",
				"--no-compile", "--only-binary", ":all:", "--target", dir}, args...)...)
		cmd.Env = append(os.Environ(), "PIP_BREAK_SYSTEM_PACKAGES=1", "PIP_ROOT_USER_ACTION=ignore")
		out, err := cmd.CombinedOutput()
		if err == nil {
			return nil
		}
		if attempt == 3 {
			return fmt.Errorf("python3 -m pip install %q: %w\n%s", args, err, out)
		}
		time.Sleep(5 * time.Second)
	}
}
