package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A shell's pipes are files to bench: -J writes to >(command), by the rank that has the results, and
// compare reads from <(command).
func TestPipesOfAShell(t *testing.T) {
	dir := t.TempDir()
	sh := func(script string) (out, errs string, status int) {
		return started(t, nil, "bash", "-c", "cd "+dir+"\n"+script, program)
	}
	for name, script := range map[string]string{
		"pipe.json": `"$0" -np 2 -e 64 -q -J >(cat >pipe.tmp; mv pipe.tmp pipe.json); ` +
			`until test -e pipe.json; do sleep 0.01; done`,
		"five.json": `"$0" -np 2 -e 64 -q -J /proc/self/fd/5 5>five.json`,
		"one.json":  `"$0" -np 1 -e 64 -q -J /dev/fd/3 3>one.json`,
		"errs.json": `"$0" -np 2 -e 64 -q -J /dev/stderr 2>errs.json`,
	} {
		_, errs, status := sh(script)
		require.Zero(t, status, "%s: %s", name, errs)
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.True(t, json.Valid(text), "%s: %.200s", name, text)
	}
	out, errs, status := sh(`"$0" compare -threshold 100000 <(cat pipe.json) <(cat five.json)`)
	require.Zero(t, status, errs)
	require.Contains(t, out, "64 B")
	out, errs, status = sh(`cat pipe.json | "$0" compare -threshold 100000 -html /dev/stdout /dev/stdin five.json`)
	require.Zero(t, status, errs)
	require.Contains(t, out, "</html>")

	// What rank 0 is not given is refused before anything is measured.
	for script, why := range map[string]string{
		`"$0" -np 2 -J /dev/fd/3 3>x`: "-J /dev/fd/3: the ranks that bench starts have files of their own there; take 5 or a higher number",
		`"$0" -np 2 -J /dev/fd/4 4>x`: "-J /dev/fd/4: the ranks that bench starts have files of their own there; take 5 or a higher number",
		`"$0" -np 2 -J /dev/fd/9`:     "-J /dev/fd/9: it cannot be written: no such file or directory",
		`"$0" -np 2 -J <(echo)`:       ": it cannot be written: it is not a regular file",
	} {
		out, errs, status := sh(script)
		require.Equal(t, 2, status, script)
		require.Empty(t, out)
		require.Contains(t, errs, why)
	}
}

// A pipe whose command writes nothing, and does not end, is waited for until bench is interrupted.
func TestPipeWithoutEnd(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	cmd := exec.CommandContext(t.Context(), program, "compare", "/dev/fd/3", "new.json")
	cmd.Env, cmd.ExtraFiles = clean(), []*os.File{r}
	var said strings.Builder
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return isReading(cmd.Process.Pid) }, 30*time.Second, time.Millisecond,
		"it does not read")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	require.Equal(t, "bench: interrupted\n", said.String())
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
}

// isReading reports whether a thread of that process waits in a pipe, and so whether the process takes signals as well.
func isReading(pid int) bool {
	names, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/syscall")
	for _, name := range names {
		text, _ := os.ReadFile(name)
		if f := strings.Fields(string(text)); len(f) > 1 && f[0] == strconv.Itoa(syscall.SYS_READ) && f[1] != "0x0" {
			return true
		}
	}
	return false
}
