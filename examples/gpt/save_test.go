package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/test/cache"
)

// trained runs the whole of n ranks and returns what rank 0 said.
func trained(t *testing.T, n int, args string) string {
	said, err := trainedTo(t, n, args)
	require.NoError(t, err)
	return said
}

var lastLoss = regexp.MustCompile(`step=6 loss=([0-9.]+)`)

// A run that is resumed after its last step has nothing to draw, which is no error.
func TestResumeAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	args := small + "2 -save " + filepath.Join(dir, "c")
	trained(t, 2, args)
	picture := filepath.Join(dir, "loss.svg")
	out := trained(t, 2, args+" -resume -csv "+filepath.Join(dir, "all.csv")+" -svg "+picture)
	require.Contains(t, out, "0 steps, 0 tokens")
	require.NoFileExists(t, picture)
}

// A checkpoint goes on in any other layout, on the losses of a run that never stopped.
func TestResume(t *testing.T) {
	for _, head := range []string{"", " -tied"} {
		whole := lastLoss.FindStringSubmatch(trained(t, 1, small+"6 -log 1"+head))
		for _, tc := range []struct {
			n, m     int
			from, to string
		}{{2, 4, "-zero 3", "-tp 2 -zero 1"}, {4, 2, "-pp 2 -micro 2 -zero 2", "-zero 0"}, {2, 2, "-tp 2 -sp megatron", "-bf16"}, {1, 2, "", "-pp 2 -micro 2"}} {
			dir := filepath.Join(t.TempDir(), "c")
			args := small + "6 -log 1 -save " + dir + head + " "
			var out bytes.Buffer
			ccltest.Run(t, tc.n, func(t testing.TB, world *ccl.Comm) {
				stop := make(chan os.Signal, 1)
				c := words(t, args+"-every 2 -keep 1 "+tc.from)
				require.NoError(t, c.place(tc.n))
				r := &run{out: &out, stop: stop}
				r.hook = func(step int) {
					if step == 3 {
						stop <- os.Interrupt
					}
				}
				require.NoError(t, r.train(t.Context(), world, c))
			})
			require.Contains(t, out.String(), "interrupted after step 3\n")
			es, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, es, 1, "one is kept")
			require.Equal(t, "step-00000003", es[0].Name())
			got := trained(t, tc.m, args+"-resume "+tc.to)
			require.Contains(t, got, "going on from "+filepath.Join(dir, "step-00000003"))
			require.NotContains(t, got, "step=3 ")
			if !strings.Contains(tc.to, "bf16") {
				require.Equal(t, whole[1][:6], lastLoss.FindStringSubmatch(got)[1][:6], "%s, then %s", tc.from, tc.to)
			}
		}
	}
}

// What no tensor shows is compared, too: going on with it changed would be another model.
func TestResumeRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	trained(t, 1, small+"2 -save "+dir)
	for args, want := range map[string]string{"-heads 2": "with -heads 4", "-tied": "with -tied=false", "-seed 2": "with -seed 1", "-rows 4": "-rows 8",
		"-layers 2 -width 16": "with -layers 4 -width 32: give these, too", "-layers 5": "with -layers 4", "-context 12": "with -context 24",
		"-vocab 200": "with -vocab "} {
		ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
			c := words(t, small+"4 -resume -save "+dir+" "+args)
			require.NoError(t, c.place(2))
			require.ErrorContains(t, (&run{out: io.Discard}).train(t.Context(), world, c), want, args)
		})
	}
	out := trained(t, 2, small+"2 -resume -sample 1 -save "+dir)
	require.Contains(t, out, "step 2 is done already, and -steps is 2: give more to train on\n")
	require.Contains(t, out, "0 steps, 0 tokens", "which only goes on from a text")
	require.NotContains(t, out, "saved step")
}

// trainedTo is trained, and what it ended with.
func trainedTo(t *testing.T, n int, args string) (said string, err error) {
	var out bytes.Buffer
	ccltest.Run(t, n, func(t testing.TB, world *ccl.Comm) {
		c := words(t, args)
		require.NoError(t, c.place(n))
		failed := (&run{out: &out}).train(t.Context(), world, c)
		if world.Rank() == 0 {
			err = failed
		}
	})
	return out.String(), err
}

// One command begins, and goes on when it is given again; each says which, and what is not as it was.
func TestResumeOrBegin(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	args := small + "2 -log 1 -resume -save " + dir
	out := trained(t, 2, args)
	require.Contains(t, out, "there is no checkpoint in "+dir+": beginning\n")
	require.Contains(t, out, "saved step 2")
	metrics := filepath.Join(t.TempDir(), "metrics")
	require.NoError(t, os.WriteFile(metrics, []byte("{}"), 0o666))
	_, err := trainedTo(t, 2, strings.Replace(args, "-resume", "-json "+metrics, 1))
	require.ErrorContains(t, err, "resume from it with -resume, or name another directory")
	kept, err := os.ReadFile(metrics)
	require.NoError(t, err)
	require.Equal(t, "{}", string(kept), "a run that is refused empties no file")
	out = trained(t, 2, strings.Replace(args, "-steps 2", "-steps 4", 1)+" -lr 2e-3 -warmup 1 -clip 2")
	require.Contains(t, out, "going on from "+filepath.Join(dir, "step-00000002")+"\nchanged since then: -steps 4 (it was 2), -lr 0.002 (it was 0.003), -warmup 1 (it was 0), -clip 2 (it was 1)\n")
	require.NotContains(t, out, "step=2 ")
	require.Contains(t, out, "saved step 4")
	out = trained(t, 1, args)
	require.Contains(t, out, "step 4 is done already, and -steps is 2: give more to train on\n")
	require.NotContains(t, out, "saved")

	// A part is lost: the one before is whole, and is said to be taken.
	require.NoError(t, os.Truncate(filepath.Join(dir, "step-00000004", "part-00002-of-00002.safetensors"), 100))
	out = trained(t, 2, small+"4 -log 1 -resume -save "+dir)
	require.Contains(t, out, filepath.Join(dir, "step-00000004")+" is not whole: ")
	require.Contains(t, out, "going on from "+filepath.Join(dir, "step-00000002"))
	require.Contains(t, out, "saved step 4", "in the place of what was damaged")

	// Other data, of the same characters.
	raw, err := read("")
	require.NoError(t, err)
	data := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(data, raw[:len(raw)/2], 0o666))
	other := filepath.Join(t.TempDir(), "c")
	trained(t, 1, small+"1 -save "+other+" -data "+data)
	require.NoError(t, os.WriteFile(data, raw[:len(raw)/3], 0o666))
	require.Contains(t, trained(t, 1, small+"1 -resume -save "+other+" -data "+data), "changed since then: the data\n")
}

// The names under which a checkpoint has what it was trained on stay: a run by another version looks for them.
func TestProgressOfAnotherVersion(t *testing.T) {
	var p progress
	require.NoError(t, json.Unmarshal([]byte(`{"Step":2,"Rows":4,"Seed":1,"Layers":1,"Heads":2,"Width":32,"Context":16,`+
		`"Vocab":3,"Tied":true,"Steps":2,"Warmup":0,"LR":0.003,"Clip":1,"Tokens":7,"Sum":9}`), &p))
	n := p
	changed, err := p.compare(n, "c")
	require.NoError(t, err)
	require.Empty(t, changed)
	n.Sum++
	changed, err = p.compare(n, "c")
	require.NoError(t, err)
	require.Equal(t, "the data", changed)
}

// A run goes back to an older checkpoint, and saves the steps after it anew.
func TestGoBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	args := small + "6 -log 1 -every 2 -keep 9 -save " + dir
	want := lastLoss.FindStringSubmatch(trained(t, 2, args))
	_, err := parse(strings.Fields(args+" -from 2"), io.Discard)
	require.ErrorContains(t, err, "-from 2 goes back to a step: it takes -resume")
	_, err = parse(strings.Fields(args+" -resume -from -2"), io.Discard)
	require.ErrorContains(t, err, "a step from 0 on")
	_, err = trainedTo(t, 2, args+" -resume -from 3")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = trainedTo(t, 2, args+" -resume -from 2 -width 64")
	require.ErrorContains(t, err, "was trained with -width 32")
	require.DirExists(t, filepath.Join(dir, "step-00000006"), "nothing is removed before the older one is loaded")
	out := trained(t, 2, args+" -resume -from 2")
	require.Contains(t, out, "going on from "+filepath.Join(dir, "step-00000002"))
	require.Equal(t, want, lastLoss.FindStringSubmatch(out))
	es, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range es {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"step-00000002", "step-00000004", "step-00000006"}, names)
}

// Weights that are not numbers do not take the place of the last ones that are.
func TestNotFiniteIsNotSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	args := small + "3 -every 1 -keep 1 -clip 0 -save " + dir
	trained(t, 2, small+"1 -keep 1 -clip 0 -save "+dir)
	_, err := trainedTo(t, 2, args+" -resume -lr 1e300")
	require.ErrorContains(t, err, "step 2 is not saved: the update has left ")
	out := trained(t, 2, args+" -resume")
	require.Contains(t, out, "going on from "+filepath.Join(dir, "step-00000001"))
	require.Contains(t, out, "saved step 3")
}

// lines is a buffer that goroutines share.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }
func (l *lines) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

var builtIn string // where built has put the program, for TestMain to remove

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gpt-test")
	if err != nil {
		return "", err
	}
	builtIn = dir
	file := filepath.Join(dir, "gpt.exe")
	cache.Whole()
	if b, err := exec.Command("go", "build", "-o", file, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, b)
	}
	return file, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

// program is the program with these arguments, which is killed after 15 minutes.
func program(t *testing.T, args string) (*exec.Cmd, *lines) {
	file, err := built()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	t.Cleanup(cancel)
	var out lines
	cmd := exec.CommandContext(ctx, file, strings.Fields(args)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// until waits for words of a program that runs.
func until(t *testing.T, out *lines, want string) {
	require.Eventually(t, func() bool { return strings.Contains(out.String(), want) }, time.Minute, time.Millisecond, "%s", out)
}

// exits is the code that a program must have ended with.
func exits(t *testing.T, code int, err error, out *lines) {
	t.Helper()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Equal(t, code, exit.ExitCode(), "%s", out)
}

// number is what stands in the first place of an output where the expression has its parentheses.
func number(t *testing.T, out *lines, what string) float64 {
	t.Helper()
	found := regexp.MustCompile(what).FindStringSubmatch(out.String())
	require.NotNil(t, found, "%s in %s", what, out)
	v, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	return v
}

// Wrong use of the program says what to change, exits with 2 and starts nothing.
func TestWrongUse(t *testing.T) {
	dir := t.TempDir()
	empty, one := filepath.Join(dir, "empty"), filepath.Join(dir, "one")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	require.NoError(t, os.WriteFile(one, []byte("a"), 0o600))
	for args, want := range map[string]string{
		"-np 2 -tp 3": "-tp 2 does", "-zero 4": "0 to 3", "-np 3 -dp 2": "-dp 3 fits", "-np 2 -micro 3": "-rows 18 does",
		"-np 2 -resume -from 3 -save " + filepath.Join(dir, "none"): "-from 3: ", "-np 2 -data " + empty: "has 0 tokens",
		"-np 2 -data " + one: "has 1 token: a -context of 128 needs at least 145", "-np 2 -context 1000000": "has ", "-np 2 -data " + filepath.Join(dir, "no"): "no such file",
		"-np 2 -save " + filepath.Join(one, "c"): "not a directory", "-np 2 -svg " + filepath.Join(dir, "no", "loss.svg"): "no such file",
		"-np 2 -json " + dir: "it is not a regular file", "-np 2 -sample \x01": "is not in the data", "-np 2 -lr NaN": "both must be finite",
		"-np 2 -width 100000": "a smaller model", "-np 2 -offload disk": "-offload disk needs -zero 1, 2 or 3",
		"-np 2 -zero 1 -offload nvme": "give disk, or disk=DIRECTORY", "-np 2 -zero 1 -spares 1 -offload disk": "leave -offload disk or the spares out",
	} {
		cmd, out := program(t, args)
		exits(t, 2, cmd.Run(), out)
		require.Contains(t, out.String(), want, args)
		require.NotContains(t, out.String(), "step=", args)
	}
}

// childrenOf are the processes that a process has started.
func childrenOf(pid int) (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for _, s := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(s)
			list = append(list, child)
		}
	}
	return list
}

// kill kills some of the n ranks that a program has started.
func kill(t testing.TB, cmd *exec.Cmd, n int, victims ...int) {
	ranks := childrenOf(cmd.Process.Pid)
	require.Len(t, ranks, n+1, "with what ends them if the launcher is killed")
	pids := map[string]int{}
	for _, pid := range ranks {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		require.NoError(t, err)
		for _, v := range strings.Split(string(env), "\x00") {
			pids[v] = pid
		}
	}
	var procs []*os.Process
	for _, rank := range victims {
		victim := pids[fmt.Sprintf("GOCCL_RANK=%d", rank)]
		require.NotZero(t, victim, "a process with GOCCL_RANK=%d", rank)
		p, err := os.FindProcess(victim)
		require.NoError(t, err)
		procs = append(procs, p)
	}
	for _, p := range procs[1:] { // so that none does anything after the first is killed
		require.NoError(t, p.Signal(syscall.Signal(19))) // SIGSTOP, which Windows has no name for
	}
	for _, p := range procs {
		require.NoError(t, p.Kill())
	}
}

// kill -9 of a rank: the others go on from the last checkpoint, and the program ends well.
func TestKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("reads /proc: nothing to do here")
		return
	}
	dir := filepath.Join(t.TempDir(), "c")
	cmd, out := program(t, small+"40 -np 4 -log 1 -recover -every 5 -save "+dir)
	require.NoError(t, cmd.Start())
	until(t, out, "step=7 ")
	kill(t, cmd, 4, 3)
	require.NoError(t, cmd.Wait(), "%s", out)
	seconds := number(t, out, `going on with 2 ranks from .* after ([0-9.]+) s: steps? \d+.* lost`)
	require.Less(t, seconds, 10., "1 is promised, beside reading the checkpoint")
	last := regexp.MustCompile(`step=40 loss=([0-9.]+)`)
	got, want := last.FindStringSubmatch(out.String()), last.FindStringSubmatch(trained(t, 2, small+"40"))
	require.NotNil(t, got, "%s", out)
	require.Equal(t, want[1][:6], got[1][:6], "the loss of a run of 2 ranks that lost none")
	require.Contains(t, out.String(), "saved step 40")
}
