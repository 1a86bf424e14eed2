package mirror

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/test/program"
	"github.com/goccl/goccl/train/internal/raw"
)

// killVariable has what TestKilledChild plays, and where which rank kills itself.
const killVariable = "GOCCL_TEST_MIRROR"

// anyStep is a step in a kill: the first time that the point is reached after a loss.
const anyStep = -2

// kill ends a process, by its rank in the job of all, at a point of a step, as the kernel ends one
// that takes too much memory.
type kill struct {
	rank, step int
	point      string
}

// scene is a job of processes.
type scene struct {
	n, spares, hosts int
	alike            bool
	kills            []kill
	lost             bool // all ranks that are left get ErrLost
}

func (s scene) toy() toy {
	j := toy{n: s.n, steps: 5, alike: s.alike}
	if s.alike {
		j.o.Shard = func(int) int { return 0 }
	}
	return j
}

// sum is what a process prints of its state.
func sum(state []int64) int64 {
	h, _ := raw.Hash([]ccl.Buf{ccl.BufOf(state)})
	return h
}

// play runs the scene, and says what is wrong with it.
func (s scene) play(t *testing.T) error {
	value := fmt.Sprintf("%d %t", s.n, s.alike)
	for _, k := range s.kills {
		value += fmt.Sprintf(" %d:%d:%s", k.rank, k.step, k.point)
	}
	if s.lost {
		value += "|" + t.TempDir() // where those meet that are to be lost together
	}
	out, err := program.Itself(t, 10*time.Minute, boot.Command{N: s.n + s.spares, Hosts: s.hosts, KeepGoing: true}, "TestKilledChild", killVariable+"="+value)
	var exit *boot.ExitError
	if !errors.As(err, &exit) || exit.Failed != len(s.kills) {
		return fmt.Errorf("%d ranks are to be killed: %w\n%s", len(s.kills), err, out)
	}
	if s.lost {
		said := regexp.MustCompile(`(?m)^error: .*$`).FindAllString(out, -1)
		slices.Sort(said)
		if left := s.n + s.spares - len(s.kills); len(said) != left || len(slices.Compact(said)) != 1 || !strings.Contains(said[0], ErrLost.Error()) {
			return fmt.Errorf("%d ranks are to say one error: %s", left, out)
		}
		return nil
	}
	if strings.Contains(out, "error: ") {
		return errors.New(out)
	}
	for role, state := range s.toy().want() {
		if line := fmt.Sprintf("rank %d has %x\n", role, sum(state)); strings.Count(out, line) != 1 {
			return fmt.Errorf("no line %q in\n%s", line, out)
		}
	}
	return nil
}

// A process that is killed before, in or after a Save, or in a Restore, is replaced by one that goes
// on with its state, and all have the states of a run without a loss.
func TestKilledProcess(t *testing.T) {
	points := []string{"step", "update", "begin", "copied", "header", "received", "whole"}
	scenes := map[string]scene{
		"the holder as well": {n: 4, spares: 2, kills: []kill{{1, 2, "update"}, {2, 2, "update"}}, lost: true},
		"in the first step":  {n: 3, spares: 1, kills: []kill{{0, 0, "update"}}},
		"two at once":        {n: 4, spares: 2, kills: []kill{{1, 2, "received"}, {3, 2, "received"}}},
		"on two hosts":       {n: 4, spares: 2, hosts: 2, kills: []kill{{2, 3, "copied"}}},
		"replicas":           {n: 3, spares: 1, alike: true, kills: []kill{{0, 2, "update"}}},
		"two replicas":       {n: 3, spares: 2, alike: true, kills: []kill{{0, 2, "step"}, {2, anyStep, "decided"}}},
	}
	for _, p := range points {
		scenes["at "+p] = scene{n: 3, spares: 1, kills: []kill{{1, 2, p}}}
	}
	for _, step := range []int{2, 3} { // a state that is mirrored anew is lost again before that is done
		scenes[fmt.Sprintf("thrice at step %d", step)] = scene{n: 4, spares: 3, kills: []kill{{1, step, "received"}, {3, anyStep, "header"}, {5, anyStep, "header"}}}
	}
	for _, p := range []string{"shrink", "restore", "decided", "restored", "header", "received"} {
		scenes["and another at "+p] = scene{n: 4, spares: 2, kills: []kill{{1, 2, "received"}, {3, anyStep, p}}}
	}
	short := []string{"the holder as well", "at copied", "at received", "and another at decided", "replicas"}
	for name, s := range scenes {
		if testing.Short() && !slices.Contains(short, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			require.NoError(t, s.play(t))
		})
	}
}

// TestKilledChild is a process of TestKilledProcess.
func TestKilledChild(t *testing.T) {
	plan, meeting, together := strings.Cut(os.Getenv(killVariable), "|")
	words := strings.Fields(plan)
	if len(words) == 0 {
		return // which is all that it does by itself
	}
	pool, err := ccl.Join(t.Context(), &ccl.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	n, err := strconv.Atoi(words[0])
	require.NoError(t, err)
	j := scene{n: n, alike: words[1] == "true"}.toy()
	rank := pool.Rank()
	var loss atomic.Bool
	j.at = func(_, step int, point string) {
		if point == "shrink" {
			loss.Store(true)
		}
		for _, w := range words[2:] {
			if w == fmt.Sprintf("%d:%d:%s", rank, step, point) || w == fmt.Sprintf("%d:%d:%s", rank, anyStep, point) && loss.Load() {
				if together {
					if err := allAt(meeting, rank, len(words[2:])); err != nil {
						panic(err)
					}
				}
				self, err := os.FindProcess(os.Getpid())
				if err == nil {
					err = self.Kill()
				}
				if err == nil {
					select {}
				}
			}
		}
	}
	role, state, err := j.run(t.Context(), pool)
	switch {
	case err != nil:
		fmt.Printf("error: %v\n", err)
	case state != nil:
		fmt.Printf("rank %d has %x\n", role, sum(state))
	}
}

// allAt waits until n ranks are where they are to be killed, which they tell each other by files in
// dir.
func allAt(dir string, rank, n int) error {
	err := os.WriteFile(filepath.Join(dir, strconv.Itoa(rank)), nil, 0o600)
	for here := 0; err == nil && here < n; time.Sleep(time.Millisecond) {
		var files []os.DirEntry
		files, err = os.ReadDir(dir)
		here = len(files)
	}
	return err
}
