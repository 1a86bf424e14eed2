package ckpt

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

const benchBytes = 256 << 20 // of all ranks together

func benchTensors(r, n int) []Tensor {
	x := make([]float32, benchBytes/4/n)
	for i := range x {
		x[i] = float32(i * (r + 1))
	}
	return []Tensor{{Name: "x", Shape: []int{n * len(x)}, Lo: r * len(x), Hi: (r + 1) * len(x), Data: x}}
}

// dd writes as many bytes to one file, in blocks as large as Save's, and syncs it: dd bs=4M conv=fsync.
func dd(name string, b []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for at := 0; at < len(b); at += block {
		if _, err := f.Write(b[at:min(at+block, len(b))]); err != nil {
			return err
		}
	}
	return f.Sync()
}

// BenchmarkSave compares Save with dd, in turns: of-dd is how many times as fast Save is.
func BenchmarkSave(b *testing.B) {
	for _, n := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			plain := bytesOf(benchTensors(0, 1)[0].Data)
			var saving, writing time.Duration
			ccltest.Run(b, n, func(t testing.TB, c *ccl.Comm) {
				ts := benchTensors(c.Rank(), n)
				for i := range b.N {
					if c.Rank() == 0 {
						began := time.Now()
						require.NoError(t, dd(filepath.Join(dir, "dd"), plain))
						writing += time.Since(began)
						require.NoError(t, os.Remove(filepath.Join(dir, "dd")))
					}
					ccltest.Barrier(t, c)
					began := time.Now()
					require.NoError(t, Save(t.Context(), c, Step(dir, i), i, ts))
					if c.Rank() == 0 {
						saving += time.Since(began)
						require.NoError(t, os.RemoveAll(Step(dir, i)))
					}
				}
			}, ccltest.Deadline(10*time.Minute))
			b.SetBytes(benchBytes)
			b.ReportMetric(writing.Seconds()/saving.Seconds(), "of-dd")
			b.ReportMetric(benchBytes*float64(b.N)/1e6/writing.Seconds(), "dd-MB/s")
			b.ReportMetric(benchBytes*float64(b.N)/1e6/saving.Seconds(), "save-MB/s")
		})
	}
}

// BenchmarkSaver compares steps of which some follow a Saver's Save with steps without: lost-% is how much longer the
// step after a Save takes. A step computes on each processor; what is saved is what a step of that length has.
func BenchmarkSaver(b *testing.B) {
	n := runtime.GOMAXPROCS(0)
	dir := b.TempDir()
	var alone, behind, issue time.Duration
	ccltest.Run(b, n, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		ts := benchTensors(c.Rank(), n)
		s, err := NewSaver(ctx, c)
		require.NoError(t, err)
		work, sum := make([]float32, 1<<16), float32(0)
		step := func() (took time.Duration) {
			require.NoError(t, ccl.Barrier(ctx, c))
			began := time.Now()
			for range 25_000 {
				for _, x := range work {
					sum += x * x
				}
			}
			require.NoError(t, ccl.Barrier(ctx, c)) // as the all-reduce of the gradients
			return time.Since(began)
		}
		step()
		for i := range b.N {
			a := step()
			began := time.Now()
			require.NoError(t, s.Save(ctx, Step(dir, i), i, ts))
			copied := time.Since(began)
			d := step()
			require.NoError(t, s.Wait(ctx))
			if c.Rank() == 0 {
				alone, behind, issue = alone+a, behind+d, issue+copied
				require.NoError(t, os.RemoveAll(Step(dir, i)))
			}
		}
		require.NoError(t, s.Close(ctx))
		runtime.KeepAlive(sum)
	}, ccltest.Deadline(10*time.Minute))
	b.ReportMetric(100*(behind.Seconds()/alone.Seconds()-1), "lost-%")
	b.ReportMetric(alone.Seconds()/float64(b.N), "s/step")
	b.ReportMetric(issue.Seconds()/float64(b.N), "s/copy")
}
