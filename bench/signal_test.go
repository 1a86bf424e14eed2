//go:build unix

package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var ofRank = regexp.MustCompile(`^#  Rank +(\d+) Group +0 Pid +(\d+) on `)

// endless starts bench on something that takes for ever, and returns the ranks'
// process ids once it measures.
func endless(t *testing.T, args ...string) (cmd *exec.Cmd, pids map[int]int, stderr *strings.Builder) {
	t.Helper()
	cmd = exec.Command(program, append([]string{"-np", "3", "-n", "2000000000"}, args...)...)
	cmd.Env = clean()
	stderr = new(strings.Builder)
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }) // a hang must not outlast the tests
	t.Cleanup(func() { timer.Stop() })
	pids = map[int]int{}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "(elements)") {
		if m := ofRank.FindStringSubmatch(lines.Text()); m != nil {
			rank, _ := strconv.Atoi(m[1])
			pids[rank], _ = strconv.Atoi(m[2])
		}
	}
	require.Len(t, pids, 3)
	go func() {
		for lines.Scan() {
		}
	}()
	return cmd, pids, stderr
}

// logged are the lines in which ranks report what they saw, before the one that counts.
var logged = regexp.MustCompile(`(?m)^bench: rank \d+ on \S+: warn: .*\n`)

// verdict is what is left of the messages without those: one line.
func verdict(t *testing.T, stderr *strings.Builder) string {
	t.Helper()
	left := logged.ReplaceAllString(stderr.String(), "")
	require.Equal(t, 1, strings.Count(left, "\n"), stderr.String())
	return left
}

// gone waits until none of the processes is there.
func gone(t *testing.T, pids map[int]int) {
	t.Helper()
	for rank, pid := range pids {
		require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, 10*time.Second, 5*time.Millisecond, "rank %d still runs", rank)
	}
}

func TestInterrupt(t *testing.T) {
	cmd, pids, stderr := endless(t)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	cmd.Wait()
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	gone(t, pids)
	require.Equal(t, "bench: interrupted; all ranks have ended\n", stderr.String())
}

// The status of a launcher that a signal ends is the one that shells have for it, whatever its ranks make of the signal.
func TestLaunchSignalled(t *testing.T) {
	for _, tc := range []struct {
		sig    syscall.Signal
		ranks  string // what they do
		status int
		says   string
	}{
		{syscall.SIGINT, "exec sleep 60", 130, "bench launch: ended by a signal: interrupt\n"},
		{syscall.SIGTERM, "exec sleep 60", 143, "bench launch: ended by a signal: terminated\n"},
		{syscall.SIGHUP, "exec sleep 60", 129, "bench launch: ended by a signal: hangup\n"},
		{syscall.SIGTERM, "exec 2>/dev/null; while :; do sleep 0.01; done", 143, "bench launch: ended by a signal: terminated\n"}, // and end with 0
	} {
		if signal.Ignored(tc.sig) {
			continue // as bench does under nohup
		}
		t.Run(tc.sig.String()+", "+tc.ranks, func(t *testing.T) {
			script := "trap 'exit 0' TERM; echo started; " + tc.ranks
			cmd := exec.Command(program, "launch", "-np", "2", "-launcher", "local", "-bind", "none", "--", "sh", "-c", script)
			var errs strings.Builder
			cmd.Env, cmd.Stderr = clean(), &errs
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
			defer kill.Stop()
			lines := bufio.NewScanner(out)
			for range 2 {
				require.True(t, lines.Scan())
			}
			require.NoError(t, cmd.Process.Signal(tc.sig))
			for lines.Scan() {
			}
			cmd.Wait()
			require.Equal(t, tc.status, cmd.ProcessState.ExitCode())
			require.Equal(t, tc.says, errs.String())
		})
	}
}

// A signal leaves no copy of the program behind where all nodes see it.
func TestSignalsRemoveCopies(t *testing.T) {
	dir := t.TempDir()
	hosts, script := filepath.Join(dir, "hosts"), "#!/bin/sh\n[ \"$1\" = --version ] && { echo PALS; exit; }\necho started\nexec sleep 60\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mpiexec"), []byte(script), 0o755))
	require.NoError(t, os.WriteFile(hosts, []byte("h1\nh2\n"), 0o666))
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			continue // as bench does under nohup
		}
		share := t.TempDir()
		cmd := exec.Command(program, "-hostfile", hosts, "-launcher", "mpiexec", "-share", share, "-q")
		cmd.Env = append(clean(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan())
		require.Equal(t, "started", lines.Text())
		copies, err := filepath.Glob(filepath.Join(share, ".goccl-bench-*"))
		require.NoError(t, err)
		require.Len(t, copies, 1)
		require.NoError(t, cmd.Process.Signal(sig))
		for lines.Scan() {
		}
		require.Error(t, cmd.Wait(), "it has not ended in good order")
		kill.Stop()
		left, err := os.ReadDir(share)
		require.NoError(t, err)
		require.Empty(t, left, "after %v", sig)
	}
}

func TestRankKilled(t *testing.T) {
	for _, rank := range []int{0, 1, 2} {
		t.Run(strconv.Itoa(rank), func(t *testing.T) {
			cmd, pids, stderr := endless(t)
			require.NoError(t, syscall.Kill(pids[rank], syscall.SIGKILL))
			cmd.Wait()
			require.Equal(t, 1, cmd.ProcessState.ExitCode())
			gone(t, pids)
			require.Equal(t, "bench: rank "+strconv.Itoa(rank)+" was ended by a signal: killed\n", verdict(t, stderr))
		})
	}
}

// One line that takes longer than -T ends the run.
func TestTimeout(t *testing.T) {
	cmd, pids, stderr := endless(t, "-T", "1")
	cmd.Wait()
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	gone(t, pids)
	require.Regexp(t, `^bench: allreduce float sum, 8 bytes: longer than -T 1s: .*\n$`, stderr.String())
}
