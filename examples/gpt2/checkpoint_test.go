//go:build xla && cgo && linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
)

// What two ranks have saved, with ZeRO or without, one and three ranks go on from, with other stages: as if nothing had happened.
func TestResume(t *testing.T) {
	small := []string{"-layers", "1", "-rows", "12", "-log", "3"}
	whole := losses(t, 1, append(small, "-steps", "9")...)
	for _, tc := range []struct {
		name, saved, resumed string
		ranks                int
	}{
		{"ZeRO 3, one rank", "-zero 3 -share -every 3", "", 1},
		{"replicas, ZeRO 1 on three ranks", "-share", "-zero 1 -share -offload", 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "b")
			save := append(small, "-save", dir)
			got := losses(t, 2, append(append(save, "-steps", "6"), strings.Fields(tc.saved)...)...)
			got = append(got, losses(t, tc.ranks, append(append(save, "-resume", "-steps", "9"), strings.Fields(tc.resumed)...)...)...)
			require.InDeltaSlice(t, whole, got, 1e-5)
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, e := range entries {
				require.Regexp(t, `^step-0000000[369]$`, e.Name())
			}
		})
	}
}

// A checkpoint of another shape, of other data, or none at all, is refused on all ranks.
func TestResumeErrors(t *testing.T) {
	dir := t.TempDir()
	small := []string{"-preset", "tiny", "-layers", "1", "-plugin", xlatest.Path(t), "-steps", "2", "-log", "1", "-flags", quick, "-save"}
	losses(t, 1, "-layers", "1", "-steps", "1", "-log", "1", "-save", dir)
	for _, tc := range []struct{ name, dir, args, want string }{
		{"none", t.TempDir(), "", "file does not exist"},
		{"another width", dir, "-width 32", "wte.weight"},
		{"other rows", dir, "-rows 4", "was trained with -seed 1337 -rows 8: give these"},
		{"other heads", dir, "-heads 4", "was trained with -heads 2: give that, too"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				_, _, err := trained(t, c, "", append(append(small, tc.dir, "-resume", "-share"), strings.Fields(tc.args)...)...)
				require.Error(t, err)
				if c.Rank() == 0 {
					require.ErrorContains(t, err, tc.want)
				}
			})
		})
	}
}
