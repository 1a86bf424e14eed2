package files

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// end is one of a pipe, as a process is given it: it stays open where the process starts another program.
type end int

func (e end) String() string { return fmt.Sprint("/dev/fd/", int(e)) }

// close closes it, once.
func (e *end) close() {
	if *e >= 0 {
		syscall.Close(int(*e))
	}
	*e = -1
}

func (e end) write(t *testing.T, text string) {
	t.Helper()
	_, err := syscall.Write(int(e), []byte(text))
	require.NoError(t, err)
}

func givenPipe(t *testing.T) (r, w *end) {
	t.Helper()
	var p [2]int
	require.NoError(t, syscall.Pipe(p[:]))
	a, b := end(p[0]), end(p[1])
	t.Cleanup(a.close)
	t.Cleanup(b.close)
	return &a, &b
}

func TestDescriptorNames(t *testing.T) {
	for name, want := range map[string]int{
		"/dev/fd/0": 0, "/dev/fd/63": 63, "/proc/self/fd/7": 7, "/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2,
		"/dev/fd/": -1, "/dev/fd/07": -1, "/dev/fd/+7": -1, "/dev/fd/-1": -1, "/dev/fd//7": -1, "/dev//fd/7": -1, "/dev/fd/7/": -1,
		"/dev/fd/99999999999999999999": -1, "/proc/1/fd/7": -1, "/proc/self/fd/../fd/7": -1, "dev/fd/7": -1, "/dev/null": -1, "7": -1, "": -1,
	} {
		fd, is := Descriptor(name)
		require.Equal(t, want >= 0, is, name)
		if is {
			require.Equal(t, want, fd, name)
		}
	}
}

// What comes by a pipe that this process was given is read to its end, up to the limit.
func TestReadDescriptor(t *testing.T) {
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		for text, most := range map[string]int64{"": 0, "1234": 4, strings.Repeat("long", 10_000): 1 << 20} {
			r, w := givenPipe(t)
			w.write(t, text)
			w.close()
			got, err := Read(fmt.Sprint(dir, int(*r)), most)
			require.NoError(t, err)
			require.Equal(t, text, string(got))
		}
	}
	r, w := givenPipe(t)
	w.write(t, "12345")
	_, err := Read(r.String(), 4) // though it has no end
	require.ErrorContains(t, err, r.String()+": it has more than the 4 bytes that are read")
}

// What is written to a descriptor that this process was given goes where that leads, behind what is there.
func TestWriteDescriptor(t *testing.T) {
	r, w := givenPipe(t)
	require.NoError(t, Writable(w.String()))
	require.NoError(t, Write(w.String(), []byte("one ")))
	require.NoError(t, Write(fmt.Sprint("/proc/self/fd/", int(*w)), []byte("two")))
	w.close()
	got, err := Read(r.String(), 100)
	require.NoError(t, err)
	require.Equal(t, "one two", string(got))

	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("before "), 0o600))
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_APPEND, 0) // as >>
	require.NoError(t, err)
	defer syscall.Close(fd)
	require.NoError(t, Writable(fmt.Sprint("/dev/fd/", fd)))
	require.NoError(t, Write(fmt.Sprint("/dev/fd/", fd), []byte("after")))
	got, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "before after", string(got))

	for _, name := range []string{"/dev/stdout", "/dev/stderr"} {
		require.NoError(t, Writable(name))
	}

	r, w = givenPipe(t)
	r.close()
	require.ErrorIs(t, Write(w.String(), []byte("x")), syscall.EPIPE, "nobody reads it")
}

// Only what this process was given is taken, and only for what it is open for. All else is what it was: a name in a directory.
func TestDescriptorsThatAreNotTaken(t *testing.T) {
	r, w := givenPipe(t)
	mine, other, err := os.Pipe() // which this process has opened itself
	require.NoError(t, err)
	defer mine.Close()
	defer other.Close()
	dir, err := syscall.Open(t.TempDir(), syscall.O_RDONLY, 0)
	require.NoError(t, err)
	defer syscall.Close(dir)
	for _, name := range []string{w.String(), fmt.Sprint("/dev/fd/", mine.Fd()), fmt.Sprint("/dev/fd/", dir), fmt.Sprintf("/dev/fd/0%d", int(*r))} {
		_, err := Read(name, 100)
		require.Error(t, err, name)
	}
	for _, name := range []string{r.String(), fmt.Sprint("/dev/fd/", other.Fd()), fmt.Sprint("/dev/fd/", dir), fmt.Sprintf("/dev/fd/0%d", int(*w))} {
		require.Error(t, Writable(name), name)
		require.Error(t, Write(name, []byte("x")), name)
	}
	_, _, err = Open(r.String(), 100)
	require.ErrorIs(t, err, ErrNotRegular)
	_, err = ReadIn("/dev/fd", fmt.Sprint(int(*r)), 100)
	require.Error(t, err)
	_, err = Append(w.String())
	require.ErrorIs(t, err, ErrNotRegular)

	w.write(t, "here")
	w.close()
	got, err := Read(r.String(), 100)
	require.NoError(t, err, "it is open all the same")
	require.Equal(t, "here", string(got))
	other.Close()
	got, err = io.ReadAll(mine)
	require.NoError(t, err)
	require.Empty(t, got)
}
