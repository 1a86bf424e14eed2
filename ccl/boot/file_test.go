package boot

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

func TestFile(t *testing.T) {
	noLeaks(t)
	dir := t.TempDir()
	for range 2 { // the same directory and name, one job after the other
		boots := joined(t, 5, func(r int) (*Boot, error) { return File(within(t, long), dir, "job", r, 5) })
		for _, b := range boots {
			require.Len(t, b.Secret(), 32)
			require.Equal(t, boots[0].Secret(), b.Secret())
		}
		swap(t, boots)
		closeAll(boots)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// TestFileStale leaves behind what jobs that died may have: nothing of it is believed.
func TestFileStale(t *testing.T) {
	dead := freeRoot(t)
	alive := freeRoot(t)
	for _, tc := range []struct {
		name string
		text string
		mode os.FileMode
	}{
		{"leads nowhere", string(rootAddr{Addrs: []string{dead}, Secret: []byte("old")}.encode()), 0o600},
		{"leads to another job", string(rootAddr{Addrs: []string{alive}, Secret: []byte("old")}.encode()), 0o600},
		{"is garbled", "{", 0o600},
		{"is for all eyes", string(rootAddr{Addrs: []string{alive}, Secret: []byte("another secret of some length")}.encode()), 0o644},
	} {
		t.Run(tc.name, func(t *testing.T) {
			noLeaks(t)
			other := joined(t, 2, func(r int) (*Boot, error) {
				return TCP(within(t, long), alive, r, 2, &TCPOptions{Job: "job", Secret: []byte("another secret of some length")})
			})
			dir := t.TempDir()
			path := filepath.Join(dir, pathOf(t, dir))
			require.NoError(t, os.WriteFile(path, []byte(tc.text), tc.mode))
			late := make(chan struct{})
			time.AfterFunc(100*time.Millisecond, func() { close(late) })
			boots := joined(t, 3, func(r int) (*Boot, error) {
				if r == 0 {
					<-late // until then there is only the old file
				}
				return File(within(t, long), dir, "job", r, 3)
			})
			swap(t, boots)
			swap(t, other)
		})
	}
}

// pathOf is the name of the file of the job "job".
func pathOf(t *testing.T, dir string) string {
	t.Helper()
	m := &joinConfig{job: "job", size: 2}
	m.store(dir, Launch{Nodes: 1})
	l, _, err := m.listen(t.Context())
	require.NoError(t, err)
	defer l.Close()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	info, err := entries[0].Info()
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, os.FileMode(0o600), info.Mode())
	}
	require.NoError(t, os.Remove(filepath.Join(dir, entries[0].Name())))
	return entries[0].Name()
}

func TestFileMissing(t *testing.T) {
	noLeaks(t)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		here := simnet.New(1, 1, simnet.Link{}).Host(0)
		_, err := File(here.Context(within(t, time.Second)), dir, "job", 1, 2)
		e := wantError(t, err, Timeout, 1, 0)
		require.Regexp(t, `^rank 0 was not found at its host within [\d.]+m?s: rank 0 has not written .*`+
			`goccl-[0-9a-f]{16} yet\. Is it running, and is its port open\?$`, e.Text)
	})

	_, err := File(within(t, long), filepath.Join(dir, "none"), "job", 0, 2)
	e := wantError(t, err, Argument, 0, -1)
	require.ErrorIs(t, e, os.ErrNotExist)
	_, err = File(within(t, long), dir, "job", 2, 2)
	require.ErrorIs(t, err, Argument)
}
