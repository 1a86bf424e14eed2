package ckpt

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// A disk that becomes full is an error that names the file, on all ranks, and leaves the last checkpoint whole, and room
// for what fits.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("goccl", dir, "tmpfs", 0, "size=12m"); err != nil {
		why := "a small file system takes root: " + err.Error()
		if os.Getenv("GOCCL_REQUIRE") == "all" {
			t.Fatal(why)
		}
		t.Skip("NOT RUN: " + why)
	}
	defer func() { require.NoError(t, syscall.Unmount(dir, 0)) }()
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx, half := t.Context(), block/4
		ts := func(value float32) []Tensor {
			return []Tensor{{Name: "x", Shape: []int{2 * half}, Lo: c.Rank() * half, Hi: (c.Rank() + 1) * half, Data: slices.Repeat([]float32{value}, half)}}
		}
		require.NoError(t, Save(ctx, c, Step(dir, 1), 1, ts(1)))
		for _, d := range []*disk{{}, {direct: true}} { // the second time there is what the first has left
			err := save(ctx, c, d, Step(dir, 2), 2, ts(2))
			require.ErrorContains(t, err, syscall.ENOSPC.Error())
			require.ErrorContains(t, err, "-of-00002.safetensors")
			from, _, err := Latest(ctx, c, dir)
			require.NoError(t, err)
			require.Equal(t, Step(dir, 1), from)
			got := ts(0)
			require.NoError(t, Load(ctx, c, from, nil, got))
			require.Equal(t, ts(1), got)
		}
		require.NoError(t, Save(ctx, c, Step(dir, 3), 3, ts(3)[:0]), "one that fits")
		if c.Rank() == 0 {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "step-00000003")))
			require.Equal(t, []string{"step-00000001"}, names(t, dir))
			require.ErrorContains(t, Export(Step(dir, 1), filepath.Join(dir, "hf"), 0, nil), modelName)
			require.Equal(t, []string{"step-00000001"}, names(t, dir))
		}
	})
}
