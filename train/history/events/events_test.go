package events_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/cache"
	"github.com/goccl/goccl/train/history/events"
)

func at(seconds float64) time.Time { return time.Unix(0, int64(seconds*1e9)) }

// The bytes are those that TensorBoard 2.20's own writer makes of the same events:
//
//	w = RecordWriter(open("golden", "wb"))
//	w.write(Event(wall_time=1.5, file_version="brain.Event:2").SerializeToString())
//	w.write(Event(wall_time=2.25, step=300, summary=loss 2.5, loss/min 0).SerializeToString())
//	w.write(Event(wall_time=3, step=0, summary=x -1).SerializeToString())
//	w.write(Event(wall_time=3, step=11, session_log=SessionLog(status=SessionLog.START)).SerializeToString())
func TestBytes(t *testing.T) {
	const golden = "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c" +
		"2c00000000000000f4aecc4509000000000000024010ac022a1e0a0b0a046c6f737315000020400a0f0a086c6f73732f6d696e150000000098ee114c" +
		"1500000000000000d6ab6b2b0900000000000008402a0a0a080a017815000080bf55c2c453" +
		"0f000000000000006d532b09090000000000000840100b3a020801a233afed"
	var b bytes.Buffer
	w := events.New(&b)
	// The version has the time of the first event.
	require.NoError(t, w.Scalars(at(2.25), 300, events.Scalar{"loss", 2.5}, events.Scalar{"loss/min", 0}))
	require.NoError(t, w.Scalars(at(3), 0, events.Scalar{"x", -1}))
	require.NoError(t, w.Restart(at(3), 11))
	got := hex.EncodeToString(b.Bytes())
	first := 2 * (12 + 24 + 4)
	require.Equal(t, golden[first:], got[first:])
	b.Reset()
	require.NoError(t, events.New(&b).Scalars(at(1.5), 0))
	require.Equal(t, golden[:first], hex.EncodeToString(b.Bytes()[:first/2]))
}

// full takes some bytes, and no more.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(b), nil
}

func TestErrorStays(t *testing.T) {
	f := &full{100}
	w := events.New(f)
	require.NoError(t, w.Scalars(at(1), 1, events.Scalar{"x", 1}))
	require.EqualError(t, w.Scalars(at(1), 2, events.Scalar{"x", 1}), "events: no space left on device")
	f.left = 1000
	require.EqualError(t, w.Scalars(at(1), 3, events.Scalar{"x", 1}), "events: no space left on device")
	require.Error(t, w.Restart(at(1), 3))
}

func TestNothingIsAllocated(t *testing.T) {
	w := events.New(io.Discard)
	list := []events.Scalar{{"loss", 1}, {"loss/min", math.NaN()}}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		require.NoError(t, w.Scalars(at(1), 1<<40, list...))
	}))
}

func TestCreate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "a")
	for range 2 { // each its own
		f, err := events.Create(dir)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Regexp(t, `^events\.out\.tfevents\.\d{10}\.[^/]+$`, filepath.Base(f.Name()))
	}
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 2)
	_, err = events.Create(filepath.Join(list[0].Name(), "\x00"))
	require.ErrorContains(t, err, "events: ")
}

// tensorboard is the directory of TensorBoard's reader and what it imports, fetched once. The rest of it is a server of 100 MB.
func tensorboard(t *testing.T) string {
	t.Helper()
	return cache.Wheels(t, "25 MB", "tensorboard-2.20.0", "--no-deps", "tensorboard==2.20.0", "protobuf==6.33.0", "absl-py==2.3.1", "numpy==2.4.6")
}

// read is what TensorBoard finds in a directory: of each tag steps and values.
const read = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
a.Reload()
print(json.dumps({t: [[e.step, repr(e.value), e.wall_time] for e in a.Scalars(t)] for t in a.Tags()["scalars"]}))
`

// TensorBoard's own reader finds what was written, in two files of which the second goes back to a step of the first.
func TestTensorBoardReads(t *testing.T) {
	packages := tensorboard(t)
	dir := t.TempDir()
	for run, steps := range [][2]int{{0, 10}, {5, 8}} { // goes back to step 5
		f, err := events.Create(dir)
		require.NoError(t, err)
		w := events.New(f)
		if run > 0 {
			require.NoError(t, w.Restart(at(100), steps[0]+1))
		}
		for step := steps[0] + 1; step <= steps[1]; step++ {
			require.NoError(t, w.Scalars(at(100*float64(run)+float64(step)+.5), step, events.Scalar{"loss", float64(step) + float64(run)/2},
				events.Scalar{"loss/max", math.Inf(1)}, events.Scalar{strings.Repeat("é", 100), -1e-20}))
		}
		require.NoError(t, f.Close())
	}
	out := cache.Python(t, packages, "", "-W", "ignore", "-c", read, dir)
	var got map[string][][3]any
	require.NoError(t, json.Unmarshal(out, &got), "%s", out)
	require.Len(t, got, 3)
	var want [][3]any
	for step := 1; step <= 5; step++ {
		want = append(want, [3]any{float64(step), []string{"", "1.0", "2.0", "3.0", "4.0", "5.0"}[step], float64(step) + .5})
	}
	for step := 6; step <= 8; step++ {
		want = append(want, [3]any{float64(step), []string{"6.5", "7.5", "8.5"}[step-6], float64(step) + 100.5})
	}
	require.Equal(t, want, got["loss"])
	require.Len(t, got["loss/max"], 8)
	require.Equal(t, "inf", got["loss/max"][0][1])
	require.Equal(t, "-9.999999682655225e-21", got[strings.Repeat("é", 100)][7][1])
}
