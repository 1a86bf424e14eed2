package offload

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl"
)

// cached is how many bytes of a file are in the page cache.
func cached(t *testing.T, l *local, n int) (bytes int) {
	mem, err := unix.Mmap(int(l.Fd()), 0, n, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	defer unix.Munmap(mem)
	pages := make([]byte, (n+4095)/4096)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mem[0])), uintptr(n), uintptr(unsafe.Pointer(&pages[0])))
	require.Zero(t, errno)
	for _, p := range pages {
		bytes += int(p&1) * 4096
	}
	return bytes
}

// The page cache keeps next to nothing of what is written and read, whether past it or through it. The file
// has no name, and its room is there before anything is written.
func TestCacheStaysSmall(t *testing.T) {
	for _, direct := range []bool{true, false} {
		dir := t.TempDir()
		f, err := open(dir, 0, direct)
		require.NoError(t, err)
		l := f.(*local)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
		d := &Disk{}
		d.f = f
		const n = 4 << 20
		c := d.Lay(ccl.TypeFloat32, n)
		require.NoError(t, d.Reserve())
		var s syscall.Stat_t
		require.NoError(t, syscall.Fstat(int(l.Fd()), &s))
		require.GreaterOrEqual(t, s.Blocks*512, int64(4*n), "room")
		d.start()
		x, y := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i] = float32(i)
		}
		c.Write(ccl.BufOf(x))
		require.NoError(t, d.Wait(t.Context(), c.Read(ccl.BufOf(y))))
		require.Equal(t, x[n-100:], y[n-100:])
		require.Less(t, cached(t, l, 4*n), n, "bytes in the page cache; past: %v", f.Direct())
		require.NoError(t, d.Close())
	}
}

// Room that a disk has not is an error before anything is written, with the name of the file.
func TestNoRoom(t *testing.T) {
	f, err := open(t.TempDir(), 3, true)
	require.NoError(t, err)
	d := &Disk{}
	d.f = f
	d.Lay(ccl.TypeFloat32, 1<<45)
	err = d.Reserve()
	require.ErrorContains(t, err, "goccl-rank3-")
	require.True(t, strings.Contains(err.Error(), "no space left") || strings.Contains(err.Error(), "too large"), "%v", err)
	require.NoError(t, f.Close())
}

// A process that is killed while it reads and writes leaves nothing in the directory.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	for range 5 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledChild$")
		cmd.Env = append(os.Environ(), "OFFLOAD_TEST_CHILD="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		line := make([]byte, len(begun))
		_, err = out.Read(line)
		require.NoError(t, err)
		require.Equal(t, begun, string(line))
		require.NoError(t, cmd.Process.Kill())
		require.ErrorContains(t, cmd.Wait(), "killed")
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

const begun = "it writes\n"

// TestKilledChild is the process that TestKilled kills.
func TestKilledChild(t *testing.T) {
	dir := os.Getenv("OFFLOAD_TEST_CHILD")
	if dir == "" {
		t.Skip("-short: a part of TestKilled")
	}
	f, err := open(dir, 0, true)
	require.NoError(t, err)
	d := &Disk{}
	d.f = f
	c := d.Lay(ccl.TypeFloat32, 1<<20)
	require.NoError(t, d.Reserve())
	d.start()
	b := ccl.BufOf(make([]float32, 1<<20))
	for n := 0; ; n++ {
		require.NoError(t, d.Wait(t.Context(), c.Write(b)))
		if n == 1 {
			fmt.Print(begun)
		}
	}
}
