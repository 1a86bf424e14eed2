package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/race"
)

var (
	offloadKills = flag.Int("offloadkills", 3, "TestOffloadKilled: so many kills")
	offloading   = flag.Int("offloading", 0, "TestOffloadSpeed: so many turns of a model in memory and on a disk, which must have .7 of the speed")
)

// group is a cgroup whose processes may have so many bytes, page cache included.
type group struct{ dir, most string }

// newGroup makes one, of either version of cgroups; without the right to it the test is skipped.
func newGroup(t *testing.T, limit int64) group {
	for _, v := range []struct{ root, limit, most string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"},
		{"/sys/fs/cgroup", "memory.max", "memory.peak"},
	} {
		dir := filepath.Join(v.root, fmt.Sprintf("goccl-test-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(dir) })
		if os.WriteFile(filepath.Join(dir, v.limit), []byte(strconv.FormatInt(limit, 10)), 0o644) == nil {
			return group{dir, v.most}
		}
	}
	t.Skip("hardware: the right to make a cgroup with a limit of memory")
	return group{}
}

// limited runs the program in g, and returns what it has said.
func (g group) limited(t *testing.T, args string) (*lines, error) {
	file, err := built()
	require.NoError(t, err)
	out := &lines{}
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `echo $$ >"$0" && exec "$@"`,
		filepath.Join(g.dir, "cgroup.procs"), file}, strings.Fields(args)...)...)
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=40MiB")
	cmd.Stdout, cmd.Stderr = out, out
	return out, cmd.Run()
}

// Parameters, gradients and AdamW's state of four times the memory that a cgroup allows, with its page
// cache, are trained from a disk, with the losses of a run in memory.
func TestOffloadBeyondMemory(t *testing.T) {
	if race.Enabled || testing.Short() {
		t.Skip("-short: 300 MB of state")
	}
	const limit = 72 << 20
	g := newGroup(t, limit)
	args := "-np 1 -layers 24 -width 256 -heads 4 -context 32 -rows 2 -steps 3 -log 1 -recompute -zero 3"
	losses := func(out *lines) []string {
		return regexp.MustCompile(`step=\d loss=\S+`).FindAllString(out.String(), -1)
	}
	cmd, free := program(t, args)
	require.NoError(t, cmd.Run(), "%s", free)
	_, err := g.limited(t, args)
	require.Error(t, err, "this much is too much for the limit, or the limit does nothing")
	out, err := g.limited(t, args+" -offload disk="+t.TempDir())
	require.NoError(t, err, "%s", out)
	require.Equal(t, losses(free), losses(out))
	require.Len(t, losses(out), 3)
	on := number(t, out, `disk of rank 0: ([0-9.]+) MB in`) * 1e6
	require.Greater(t, on, 4.*limit)
	text, err := os.ReadFile(filepath.Join(g.dir, g.most))
	require.NoError(t, err)
	t.Logf("%.0f MB on the disk, a limit of %d MB, of which %s bytes were used at most\n%s", on/1e6, limit/1000000,
		strings.TrimSpace(string(text)), out)
}

// A run whose state is on the disk saves it, and goes on in another layout as one does that was in memory.
func TestOffloadResumes(t *testing.T) {
	args := small + "4 -log 1 -np 2 "
	last := func(layout string) string {
		cmd, out := program(t, args+layout)
		require.NoError(t, cmd.Run(), "%s", out)
		all := regexp.MustCompile(`step=\d loss=\S+`).FindAllString(out.String(), -1)
		return all[len(all)-1]
	}
	want := last("-zero 3")
	for _, layouts := range [][2]string{{"-zero 3 -offload disk=", "-zero 1"}, {"-zero 2", "-zero 3 -offload disk="},
		{"-zero 1 -offload disk=", "-zero 3 -offload disk="}} {
		dir, scratch := t.TempDir(), t.TempDir()
		on := func(s string) string { return strings.Replace(s, "disk=", "disk="+scratch, 1) }
		cmd, out := program(t, strings.Replace(args, "-steps 4", "-steps 4 -every 2 -save "+dir, 1)+on(layouts[0]))
		require.NoError(t, cmd.Run(), "%s", out)
		require.Equal(t, want, last(on(layouts[1])+" -resume -from 2 -save "+dir), "%v", layouts)
		left, err := os.ReadDir(scratch)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// kill -9 of a rank, of the launcher or of all at any moment loses nothing: the next run goes on from the last
// checkpoint, in any layout, with the losses of a run that nothing disturbs, and nothing stays on the disk.
func TestOffloadKilled(t *testing.T) {
	args := small + "30 -log 1 -np 2 "
	loss := regexp.MustCompile(`(?m)^step=(\d+) (loss=\S+)`)
	cmd, free := program(t, args)
	require.NoError(t, cmd.Run(), "%s", free)
	want := loss.FindAllStringSubmatch(free.String(), -1)
	dir, scratch := filepath.Join(t.TempDir(), "c"), t.TempDir()
	saved := 0 // at least so many steps
	for kills := 0; kills < *offloadKills; {
		layout := fmt.Sprintf("-zero %d -every 1 -resume -save %s -offload disk=%s", 1+rand.IntN(3), dir, scratch)
		cmd, out := program(t, args+layout)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, cmd.Start())
		over := make(chan error, 1)
		go func() { over <- cmd.Wait() }()
		killed := false
		var err error
		select {
		case err = <-over:
		case <-time.After(time.Duration(rand.IntN(4000)) * time.Millisecond):
			victim := cmd.Process.Pid
			if below := childrenOf(victim); len(below) > 0 && kills%2 == 0 {
				victim = below[rand.IntN(len(below))]
			} else if kills%4 == 1 {
				victim = -victim
			}
			if killed = syscall.Kill(victim, syscall.SIGKILL) == nil; killed {
				kills++
			}
			err = <-over
		}
		require.Eventually(t, func() bool { return syscall.Kill(-cmd.Process.Pid, 0) == syscall.ESRCH }, time.Minute, time.Millisecond)
		steps := loss.FindAllStringSubmatch(out.String(), -1)
		for _, s := range steps {
			n, _ := strconv.Atoi(s[1])
			require.Equal(t, want[n-1], s, "%s", out)
		}
		if len(steps) > 0 {
			first, _ := strconv.Atoi(steps[0][1])
			require.Greater(t, first, saved, "%s", out)
			last, _ := strconv.Atoi(steps[len(steps)-1][1])
			saved = max(saved, last-2)
		}
		left, e := filepath.Glob(filepath.Join(scratch, "*"))
		require.NoError(t, e)
		for _, name := range left { // which a rank had not yet taken the name from
			info, e := os.Stat(name)
			require.NoError(t, e)
			require.Zero(t, info.Size())
			require.NoError(t, os.Remove(name))
		}
		if err == nil { // it came to its end
			require.NoError(t, os.RemoveAll(dir))
			saved = 0
		} else {
			require.True(t, killed, "%s", out)
		}
	}
}

// On a quiet machine a model on a disk has .7 of the speed that it has in memory, at 4,096 tokens a step.
func TestOffloadSpeed(t *testing.T) {
	if *offloading == 0 {
		t.Skip("-short: give -offloading, on a quiet machine")
	}
	args := "-np 2 -layers 12 -width 512 -heads 8 -context 256 -rows 16 -steps 6 -log 1 -zero 3"
	var speeds [2][]float64
	for range *offloading {
		for k, where := range []string{"", " -offload disk=" + t.TempDir()} {
			cmd, out := program(t, args+where)
			require.NoError(t, cmd.Run(), "%s", out)
			for _, m := range regexp.MustCompile(`step=[3-6] .*tps=(\d+)`).FindAllStringSubmatch(out.String(), -1) {
				v, err := strconv.ParseFloat(m[1], 64)
				require.NoError(t, err)
				speeds[k] = append(speeds[k], v)
			}
			if k == 1 {
				t.Log(regexp.MustCompile(`disk of rank 0: .* at .*`).FindString(out.String()))
			}
		}
	}
	median := func(x []float64) float64 { slices.Sort(x); return x[len(x)/2] }
	memory, disk := median(speeds[0]), median(speeds[1])
	t.Logf("%.0f tokens/s in memory, %.0f on the disk: %.2f", memory, disk, disk/memory)
	require.Greater(t, disk, .7*memory)
}
