package files

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostile makes what others may leave under a name, or skips what this system does not have.
func hostile(t *testing.T, what, name string) {
	t.Helper()
	var err error
	switch what {
	case "a directory":
		err = os.Mkdir(name, 0o700)
	case "a pipe":
		err = makePipe(t, name)
	case "a link to a pipe":
		err = errors.Join(makePipe(t, name+".pipe"), os.Symlink(name+".pipe", name))
	case "a link to a device":
		if _, err := os.Stat("/dev/zero"); err != nil {
			t.Skip("hardware: no /dev/zero here")
		}
		err = os.Symlink("/dev/zero", name)
	default:
		t.Fatal(what)
	}
	require.NoError(t, err)
}

var allHostile = []string{"a directory", "a pipe", "a link to a pipe", "a link to a device"}

// Every way refuses what is no file, and waits for none of it.
func TestWhatIsNoFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // which has none of these names
	}
	for _, what := range allHostile {
		for way, open := range map[string]func(dir, name string) error{
			"Open":   func(dir, name string) error { _, _, err := Open(filepath.Join(dir, name), 1<<20); return err },
			"Read":   func(dir, name string) error { _, err := Read(filepath.Join(dir, name), 1<<20); return err },
			"OpenIn": func(dir, name string) error { _, _, err := OpenIn(dir, name, 1<<20); return err },
			"ReadIn": func(dir, name string) error { _, err := ReadIn(dir, name, 1<<20); return err },
			"Create": func(dir, name string) error { _, err := Create(filepath.Join(dir, name)); return err },
			"Append": func(dir, name string) error { _, err := Append(filepath.Join(dir, name)); return err },
			"Write":  func(dir, name string) error { return Write(filepath.Join(dir, name), []byte("x")) },
			"Check":  func(dir, name string) error { return Writable(filepath.Join(dir, name)) },
		} {
			t.Run(what+" for "+way, func(t *testing.T) {
				dir := t.TempDir()
				hostile(t, what, filepath.Join(dir, "file"))
				err := open(dir, "file")
				require.ErrorIs(t, err, ErrNotRegular)
				require.ErrorContains(t, err, filepath.Join(dir, "file"))
			})
		}
		t.Run(what+" for New", func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "file")
			hostile(t, what, name)
			_, err := New(name, os.O_WRONLY, 0o600)
			require.ErrorIs(t, err, fs.ErrExist)
		})
		if what != "a directory" {
			t.Run(what+" for the folder", func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "folder")
				hostile(t, what, dir)
				_, _, err := OpenIn(dir, "file", 1<<20)
				require.Error(t, err)
				_, err = OpenDir(dir)
				require.Error(t, err)
			})
		}
	}
}

func TestSizes(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(name, []byte("1234"), 0o600))
	for _, most := range []int64{4, 5, math.MaxInt64} {
		text, err := Read(name, most)
		require.NoError(t, err)
		require.Equal(t, "1234", string(text))
		f, size, err := OpenIn(dir, "file", most)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, int64(4), size)
	}
	_, err := Read(name, 3)
	require.ErrorContains(t, err, "it has 4 bytes, more than the 3 that are read")
	_, _, err = OpenIn(dir, "file", 3)
	require.ErrorContains(t, err, "it has 4 bytes, more than the 3 that are read")

	// A file that grows as it is read is read up to the limit.
	f, size, err := Open(name, 5)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, os.WriteFile(name, []byte("123456"), 0o600))
	_, err = contents(f, size, 5)
	require.ErrorContains(t, err, "it has more than the 5 bytes that are read")

	_, err = Read(filepath.Join(dir, "none"), 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = ReadIn(dir, "none", 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = ReadIn(filepath.Join(dir, "none"), "none", 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A user's own word may be a link. The word of others leads nowhere but where the user has pointed.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	link := func(to, name string) { // as a link that has been unpacked or copied, whether it leads anywhere or not
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.Symlink(filepath.FromSlash(to), filepath.Join(dir, name)))
	}
	write("home/key", "a private key")
	write("given/beside", "beside")
	link("../home/key", "given/out")
	link(filepath.Join(dir, "home/key"), "given/absolute")
	link(filepath.Join(dir, "given/beside"), "given/absolute-inside")
	link("beside", "given/in")
	link("sub/../beside", "given/round")
	link("../home", "given/up")
	link("loop", "given/loop")
	link("gone", "given/dangling")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "given/sub"), 0o700))
	write("cache/models--a--b/blobs/01", "weights")
	link("../../blobs/01", "cache/models--a--b/snapshots/r1/model")
	link("../../../../home/key", "cache/models--a--b/snapshots/r1/key")
	link("cache/models--a--b/snapshots/r1", "main")
	write("other/blobs/01", "no cache")
	link("../../blobs/01", "other/snapshots/r1/model")
	for _, tc := range []struct {
		dir, name, want string // "": refused
	}{
		{"given", "beside", "beside"}, {"given", "in", "beside"}, {"given", "round", "beside"},
		{"given", "out", ""}, {"given", "absolute", ""}, {"given", "absolute-inside", ""}, {"given", "loop", ""},
		{"cache/models--a--b/snapshots/r1", "model", "weights"}, {"main", "model", "weights"}, {"cache", "models--a--b/snapshots/r1/model", "weights"},
		{"cache/models--a--b/snapshots/r1", "key", ""}, {"cache", "models--a--b/snapshots/r1/key", ""},
		{"other/snapshots/r1", "model", ""}, {"other", "snapshots/r1/model", "no cache"},
	} {
		text, err := ReadIn(filepath.Join(dir, tc.dir), filepath.FromSlash(tc.name), 1<<20)
		if tc.want == "" {
			require.ErrorIs(t, err, ErrNotRegular, "%s in %s", tc.name, tc.dir)
			require.ErrorContains(t, err, "links are followed only inside ")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tc.want, string(text))
	}
	for _, name := range []string{"../home/key", "up/key"} {
		_, err := ReadIn(filepath.Join(dir, "given"), filepath.FromSlash(name), 1<<20)
		require.ErrorContains(t, err, "escapes")
	}
	_, err := ReadIn(filepath.Join(dir, "given"), "dangling", 1<<20)
	require.ErrorIs(t, err, fs.ErrNotExist)
	text, err := Read(filepath.Join(dir, "given/out"), 1<<20)
	require.NoError(t, err)
	require.Equal(t, "a private key", string(text))

	// What is written follows none, whether something is there or not.
	for _, name := range []string{"out", "absolute", "in", "loop", "dangling"} {
		name = filepath.Join(dir, "given", name)
		require.ErrorContains(t, Writable(name), "a link", name)
		require.ErrorContains(t, Write(name, []byte("x")), "a link", name)
		_, err = Append(name)
		require.ErrorContains(t, err, "a link", name)
		_, err = New(name, os.O_WRONLY, 0o600)
		require.ErrorIs(t, err, fs.ErrExist, name)
	}
	require.NoFileExists(t, filepath.Join(dir, "given/gone"))
	text, err = os.ReadFile(filepath.Join(dir, "home/key"))
	require.NoError(t, err)
	require.Equal(t, "a private key", string(text))
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	has := func(want string) {
		t.Helper()
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.NoError(t, Writable(name))
	require.NoFileExists(t, name)
	require.NoError(t, Write(name, []byte("first, and long")))
	has("first, and long")
	require.NoError(t, Writable(name))
	has("first, and long")
	require.NoError(t, Write(name, []byte("second")))
	has("second")
	f, err := Append(name)
	require.NoError(t, err)
	text, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "second", string(text))
	_, err = f.WriteString("+")
	require.NoError(t, errors.Join(err, f.Close()))
	has("second+")
	_, err = New(name, os.O_WRONLY, 0o600)
	require.ErrorIs(t, err, fs.ErrExist)

	for _, device := range []string{os.DevNull, "/dev/full"} { // where nothing is lost
		if _, err := os.Stat(device); err == nil {
			require.NoError(t, Writable(device))
			f, err := Create(device)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	}
	require.NoError(t, Write(os.DevNull, []byte("x")))
	require.ErrorIs(t, Writable(filepath.Join(dir, "none", "file")), fs.ErrNotExist)
	require.ErrorIs(t, Write(filepath.Join(dir, "none", "file"), nil), fs.ErrNotExist)
}
