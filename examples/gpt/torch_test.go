package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/test/cache"
	"github.com/goccl/goccl/train/ckpt"
)

// pytorch is the directory of PyTorch, fetched once.
func pytorch(t *testing.T) string {
	if testing.Short() {
		t.Skip("-short: fetches 540 MB of PyTorch")
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), "../../test/peers/torch/fetch.sh")
	cmd.Stderr = &stderr
	dir, err := cmd.Output()
	if err != nil {
		if os.Getenv("GOCCL_REQUIRE") == "all" {
			t.Fatalf("%v: %s", err, &stderr)
		}
		t.Skipf("NOT RUN: %v: %s", err, &stderr)
	}
	return strings.TrimSpace(string(dir))
}

// PyTorch begins with the weights that this program exports, trains on the same batches, and has the same losses; the
// weights that it has trained, loaded back, have the loss that it says.
func TestTorch(t *testing.T) {
	const steps, rows = 20, 8
	torch := pytorch(t)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	want := make([]float64, steps)
	var shape config
	train := func(t testing.TB, world *ccl.Comm, begin func(*trainer), step func(step int, loss float64)) {
		begun(t, world, "", steps, func(tr *trainer) {
			begin(tr)
			for s := 1; step != nil && s <= steps; s++ {
				loss, _, err := tr.step(t.Context(), s)
				require.NoError(t, err)
				step(s, loss)
			}
		})
	}
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		train(t, world, func(tr *trainer) {
			require.NoError(t, ckpt.Save(t.Context(), world, in("begin"), nil, weights(t, tr)))
			if world.Rank() > 0 {
				return
			}
			shape = *tr.cfg
			require.NoError(t, ckpt.Export(in("begin"), in("whole"), 0, nil))
			var batches bytes.Buffer
			for s := range steps + 1 {
				x, y := tr.text.batch(tr.cfg.seed, s+1, rows, 0, rows, tr.cfg.Context)
				require.NoError(t, binary.Write(&batches, binary.LittleEndian, x))
				require.NoError(t, binary.Write(&batches, binary.LittleEndian, y))
			}
			require.NoError(t, os.WriteFile(in("batches"), batches.Bytes(), 0o666))
		}, func(step int, loss float64) {
			if world.Rank() == 0 {
				want[step-1] = loss
			}
		})
	})
	require.NoError(t, os.Mkdir(in("trained"), 0o777))
	t.Setenv("LD_LIBRARY_PATH", filepath.Join(torch, "stubs"))
	t.Setenv("OMP_NUM_THREADS", "1")
	for _, ranks := range []int{1, 2} {
		out := cache.Python(t, torch, "", "-W", "ignore", "../../test/peers/torch/gpt.py", "--ranks", strconv.Itoa(ranks),
			"--vocab", strconv.Itoa(shape.Vocab), "--context", strconv.Itoa(shape.Context), "--width", strconv.Itoa(shape.Width),
			"--heads", strconv.Itoa(shape.Heads), "--layers", strconv.Itoa(shape.Layers), "--rows", strconv.Itoa(rows), "--steps", strconv.Itoa(steps),
			"--lr", "3e-3", "--batches", in("batches"), "--weights", in("whole/model.safetensors"), "--trained", in("trained/model.safetensors"))
		var got []float64
		for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
			var line struct{ Loss float64 }
			require.NoError(t, d.Decode(&line))
			got = append(got, line.Loss)
		}
		require.Len(t, got, steps+1)
		require.InDeltaSlice(t, want, got[:steps], 1e-4, "%d ranks of PyTorch", ranks)
		require.Less(t, want[steps-1], want[0]-.2)
		ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
			train(t, world, func(tr *trainer) {
				require.NoError(t, ckpt.Load(t.Context(), world, in("trained"), nil, weights(t, tr)))
				require.NoError(t, tr.model.Loaded(t.Context()))
				loss, _, err := tr.step(t.Context(), steps+1)
				require.NoError(t, err)
				require.InDelta(t, got[steps], loss, 1e-5)
			}, nil)
		})
	}
}

// weights are the parameters of this rank, without the state of the optimizer.
func weights(t testing.TB, tr *trainer) (list []ckpt.Tensor) {
	all, err := tr.tensors(nil)
	require.NoError(t, err)
	for _, x := range all {
		if !strings.HasPrefix(x.Name, "adamw.") {
			list = append(list, x)
		}
	}
	return list
}
