//go:build linux

package promises

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/test/cache"
	"github.com/stretchr/testify/require"
)

var (
	kills     = flag.Int("kills", 0, "TestR19SameLosses kills so many ranks; 0: a few")
	killsFrom = flag.Uint64("kills-from", 0, "TestR19SameLosses begins with this seed")
	seconds   = flag.Int("second", 0, "TestR19SameLosses makes so many jobs more in which a second rank is killed 0 to 200 ms after the first, and counts them by themselves")
)

// trained is a layout of 4 ranks of examples/gpt.
type trained struct {
	flags string
	// together are the ranks whose loss at the same time as that of a rank may take its state with it: the holder of its copy, by
	// how many places it is away, or its replica.
	together []int
}

// Ranks that hold a state and its copy are neighbors; with two replicas of two parts, every second rank is a replica.
var layouts = []trained{
	{"-zero 0", nil}, {"-zero 1", []int{1, 3}}, {"-zero 3", []int{1, 3}}, {"-zero 1 -tp 2", []int{1, 3}}, {"-zero 2 -bf16", []int{1, 3}},
	{"-zero 2", []int{1, 3}}, {"-zero 0 -tp 2", []int{2}}, {"-zero 0 -pp 2 -micro 2", []int{2}}, {"-zero 2 -pp 2 -micro 4", []int{1, 3}},
	{"-zero 3 -micro 2", []int{1, 3}}, {"-zero 0 -bf16 -micro 2", nil}, {"-sp ring=2", nil}, {"-zero 3 -sp ulysses=2", []int{1, 3}},
	{"-tp 2 -sp megatron -zero 1", []int{1, 3}}, {"-tp 4", []int{1, 3}}, {"-pp 4 -micro 4", []int{1, 3}}, {"-zero 1 -tied -mirror 3", []int{1, 3}},
	{"-pp 2 -micro 2 -tied -zero 3", []int{1, 3}}, {"-zero 0 -every 7 -save", nil}, {"-zero 2 -every 7 -save", []int{1, 3}},
}

// hangs is how long a job may take that takes a second, on a machine that others starve.
const hangs = 10 * time.Minute

// gptSteps is long enough for a loss, and another one within 200 ms.
const gptSteps = 150

// writer is what a program writes; sees is closed when that has words in it.
type writer struct {
	mu   sync.Mutex
	text bytes.Buffer
	word string
	sees chan struct{}
}

func (w *writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(b)
	if w.word != "" && strings.Contains(w.text.String(), w.word) {
		w.word = ""
		close(w.sees)
	}
	return n, err
}

// harm is the loss of a rank of the job, some time after the first step begins or after the loss before.
type harm struct {
	rank  int
	after time.Duration
}

// gptJob is a run of examples/gpt on 4 ranks and 2 spares.
type gptJob struct {
	losses map[int]string // the text of each step's mean
	twice  []int          // steps that have several lines
	killed int            // ranks that were alive
	said   string
	took   time.Duration // from the first step on
}

// train runs a layout, harms its ranks, and returns what has come of it.
func (l trained) train(ctx context.Context, program, dir string, harms ...harm) (j gptJob, err error) {
	ctx, cancel := context.WithTimeout(ctx, hangs)
	defer cancel()
	metrics, saved := filepath.Join(dir, "metrics.json"), filepath.Join(dir, "checkpoints")
	_ = errors.Join(os.Remove(metrics), os.RemoveAll(saved))
	flags := strings.Fields(l.flags)
	if strings.HasSuffix(l.flags, "-save") {
		flags = append(flags, saved)
	}
	out := &writer{word: "training a GPT-2", sees: make(chan struct{})}
	cmd := exec.CommandContext(ctx, program, append(flags, "-np", "4", "-spares", "2", "-steps", strconv.Itoa(gptSteps), "-layers", "4", "-heads", "4",
		"-width", "32", "-context", "24", "-rows", "8", "-log", "1000", "-json", metrics)...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return j, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-out.sees:
	case err := <-ended:
		return j, fmt.Errorf("it has not begun: %w: %s", err, out.text.String())
	}
	began := time.Now()
	ranks := ranksOf(cmd.Process.Pid)
	for _, h := range harms {
		select {
		case err := <-ended:
			ended <- err
		case <-time.After(h.after):
			if p := ranks[h.rank]; p != nil && alive(p.Pid) && p.Kill() == nil {
				j.killed++
			}
		}
	}
	err = <-ended
	j.took, j.said = time.Since(began), out.text.String()
	if err != nil {
		return j, fmt.Errorf("%w: %s", errors.Join(err, ctx.Err()), j.said)
	}
	text, err := os.ReadFile(metrics)
	if err != nil {
		return j, err
	}
	j.losses = map[int]string{}
	for line := range strings.Lines(string(text)) {
		var of struct {
			Step int
			Loss struct{ Mean json.RawMessage }
		}
		if err := json.Unmarshal([]byte(line), &of); err != nil {
			return j, fmt.Errorf("%q: %w", line, err)
		}
		if j.losses[of.Step] != "" {
			j.twice = append(j.twice, of.Step)
		}
		j.losses[of.Step] = string(of.Loss.Mean)
	}
	return j, nil
}

// ranksOf are the processes that a launcher has started, by rank, those left out that have ended.
func ranksOf(launcher int) map[int]*os.Process {
	ranks := map[int]*os.Process{}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", launcher))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for _, word := range strings.Fields(string(text)) {
			pid, _ := strconv.Atoi(word)
			p, err := os.FindProcess(pid) // which it stands for from now on, whatever becomes of the number
			env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			for _, v := range strings.Split(string(env), "\x00") {
				if rank, ok := strings.CutPrefix(v, "GOCCL_RANK="); ok && err == nil {
					n, _ := strconv.Atoi(rank)
					ranks[n] = p
				}
			}
		}
	}
	return ranks
}

// alive reports whether a process has not ended.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// harms are what a seed does to a job that takes so long: one rank is lost, or two within 200 ms, a spare or not; always two where that
// is asked for. Two are never a state and its copy.
func (l trained) harms(seed uint64, long time.Duration, two bool) []harm {
	r := rand.New(rand.NewPCG(seed, 19))
	first := harm{r.IntN(4), time.Duration(r.Int64N(int64(long)))}
	if r.IntN(8) == 0 {
		first.rank = 4 + r.IntN(2)
	}
	if r.IntN(5) < 3 && !two {
		return []harm{first}
	}
	second := harm{r.IntN(6), time.Duration(r.Int64N(int64(200 * time.Millisecond)))}
	for second.rank == first.rank || first.rank < 4 && second.rank < 4 && slices.Contains(l.together, (second.rank-first.rank+4)%4) {
		second.rank = r.IntN(6)
	}
	return []harm{first, second}
}

var inMilliseconds = regexp.MustCompile(`replaced by \d spares? in (\d+) ms`)

// Ranks of a training run are killed at any moment, one or two; spares take their places. The losses are those of a run in which
// nobody is, to the bit, each step has one line, nothing is read from a disk, and the program ends well.
func TestR19SameLosses(t *testing.T) {
	most, few := *kills, len(layouts)
	switch {
	case most > 0:
	case *write:
		most = 60
	default:
		most, few = 5, 3
		if testing.Short() {
			most, few = 2, 2
		}
	}
	j := &lossJobs{t: t, dir: t.TempDir(), layouts: layouts[:few], plain: map[int]gptJob{}}
	j.program = filepath.Join(j.dir, "gpt")
	cache.Whole()
	out, err := exec.Command("go", "build", "-o", j.program, "../../examples/gpt").CombinedOutput()
	require.NoError(t, err, "%s", out)
	seed := *killsFrom
	for ; j.killed < most; seed++ {
		j.run(seed, false)
		require.Less(t, j.jobs, 10*most, "%d kills: nearly all jobs end before", j.killed)
	}
	if j.bad == 0 {
		j.record("ranks of a training run are killed at random, one or two within 200 ms: the losses")
	}
	second := &lossJobs{t: t, dir: j.dir, program: j.program, layouts: j.layouts, plain: j.plain}
	for ; second.two < *seconds; seed++ {
		second.run(seed, true)
		require.Less(t, second.jobs, 10**seconds, "%d jobs lose two ranks: nearly all end before", second.two)
	}
	if second.jobs > 0 && second.bad == 0 {
		second.record("a second rank is killed 0 to 200 ms after the first: the losses")
	}
	if bad := j.bad + second.bad; bad > 0 {
		t.Fatalf("%d of %d jobs with %d kills came to another end", bad, j.jobs+second.jobs, j.killed+second.killed)
	}
}

// lossJobs are jobs in which ranks are killed, and what has come of them.
type lossJobs struct {
	t                      *testing.T
	dir, program           string
	layouts                []trained
	plain                  map[int]gptJob // by layout: where nobody is lost
	took                   []time.Duration
	jobs, killed, two, bad int // two: in so many jobs two ranks were killed
}

// run is the job of a seed.
func (j *lossJobs) run(seed uint64, two bool) {
	t := j.t
	which := int(seed % uint64(len(j.layouts)))
	l := j.layouts[which]
	want, ok := j.plain[which]
	if !ok {
		var err error
		want, err = l.train(t.Context(), j.program, j.dir)
		require.NoError(t, err, l.flags)
		require.Len(t, want.losses, gptSteps, l.flags)
		j.plain[which] = want
	}
	harms := l.harms(seed, want.took, two)
	got, err := l.train(t.Context(), j.program, j.dir, harms...)
	j.jobs++
	j.killed += got.killed
	if got.killed == 2 {
		j.two++
	}
	switch what := fmt.Sprintf("seed %d, %s, %v:", seed, l.flags, harms); {
	case err != nil:
		t.Errorf("%s %.4000s", what, err)
		j.bad++
	case strings.Contains(got.said, "from "+j.dir):
		t.Errorf("%s it has read a checkpoint:\n%.4000s", what, got.said)
		j.bad++
	case got.twice != nil || !maps.Equal(want.losses, got.losses):
		t.Errorf("%s other losses; several lines of steps %v:\n%.4000s", what, got.twice, got.said)
		j.bad++
	}
	for _, m := range inMilliseconds.FindAllStringSubmatch(got.said, -1) {
		ms, _ := strconv.Atoi(m[1])
		j.took = append(j.took, time.Duration(ms)*time.Millisecond)
	}
	if *kills > 0 && j.jobs%20 == 0 {
		t.Logf("%d jobs, %d ranks killed, two of them in %d jobs, %d bad", j.jobs, j.killed, j.two, j.bad)
	}
	require.Less(t, j.bad, 20)
}

func (j *lossJobs) record(what string) {
	middle, largest := spread(j.took)
	record(j.t, 19, "R19", what, "those of an undisturbed run, to the bit",
		"the same, %d jobs with %d kills, %d of them with two; whole again after %v, at most %v", j.jobs, j.killed, j.two, middle, largest)
}
