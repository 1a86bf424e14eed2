// Package files opens the files that users name, and writes files where others may write.
//
// It protects a user against whoever may write in the directories that are named, another account
// of the host above all, and against whoever has made a file that the user was given:
//
//   - Open and Read take regular files alone, of at most so many bytes: no pipe is waited for, and
//     no device is read. What counts is
//     the file that is open, so nothing can be swapped in between the look and the use. Links in
//     the name are followed, since the user
//     has named it.
//   - OpenIn and ReadIn take a file whose name others chose: it is in the folder that the user has
//     named, and links are followed inside
//     that folder only.
//   - Create, Append and Write make a new file, or take a regular file of this user's that has no
//     second name. They follow no link that
//     has the file's name, wait for no pipe, and leave alone what belongs to others. They also take
//     a character device: root made it.
//     Where a file server has this user's files be another's, as root's be nobody's, a file of that
//     owner's is this user's if its owner alone may write to it.
//   - New makes a new file, or fails.
//   - On Linux, Read, Create and Write also take a name such as /dev/fd/63, with which a shell names
//     a pipe to or from a command, and /dev/stdin, /dev/stdout and /dev/stderr: see Descriptor.
//     Nothing is opened then. It must be a descriptor that the process was given: whoever started it
//     has opened that. Only there Read waits, for the end of what comes, at most so many bytes.
//
// Links in the directories above a file are followed: the user has named these. Whoever may write
// in a directory can remove what is made there, or read it if its mode lets them. Nothing here
// bounds how long a file system takes. Windows has access lists, and pipes in a place of their own:
// there Create does not ask whose a file is.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNotRegular is the error for a pipe, a device, a socket or a directory, and for a link that is not followed.
var ErrNotRegular = errors.New("it is not a regular file")

// refusal is the error for a file that is not opened, and says why.
func refusal(name string, why error) error { return &fs.PathError{Op: "open", Path: name, Err: why} }

// Open opens a regular file of at most so many bytes to read it, and returns its size.
func Open(name string, most int64) (*os.File, int64, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		if info, e := os.Stat(name); e == nil && !info.Mode().IsRegular() { // as a socket, which nobody can open
			err = refusal(name, ErrNotRegular)
		}
		return nil, 0, err
	}
	return regular(f, most)
}

// regular returns f and its size, unless it is none that Open opens.
func regular(f *os.File, most int64) (*os.File, int64, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = refusal(f.Name(), ErrNotRegular)
	case info.Size() > most:
		err = refusal(f.Name(), fmt.Errorf("it has %d bytes, more than the %d that are read", info.Size(), most))
	default:
		return f, info.Size(), nil
	}
	f.Close()
	return nil, 0, err
}

// Read returns what is in a file that Open opens, or what comes by a descriptor that this process
// was given, until its end.
func Read(name string, most int64) ([]byte, error) {
	if f, is := given(name, os.O_WRONLY); is {
		defer f.Close()
		return contents(f, 0, most)
	}
	f, size, err := Open(name, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return contents(f, size, most)
}

// Unchanged is an error unless f is the file that was describes, of that size and time. It follows a
// read of a file that stays open, or is opened again. Two writes to which the file system gives one
// time count as one.
func Unchanged(f *os.File, was fs.FileInfo) error {
	info, err := f.Stat()
	if err == nil && (!os.SameFile(was, info) || was.Size() != info.Size() || !was.ModTime().Equal(info.ModTime())) {
		err = errors.New("the file was changed or replaced while it was in use")
	}
	return err
}

// ReadIn returns what is in a file that OpenIn opens.
func ReadIn(dir, name string, most int64) ([]byte, error) {
	f, size, err := OpenIn(dir, name, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return contents(f, size, most)
}

// contents reads f, which may be longer by now.
func contents(f *os.File, size, most int64) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, min(size, 1<<36)+bytes.MinRead))
	n, err := b.ReadFrom(io.LimitReader(f, max(most, most+1))) // one byte more, if that is a number
	if err == nil && n > most {
		err = refusal(f.Name(), fmt.Errorf("it has more than the %d bytes that are read", most))
	}
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// OpenIn is Open of a file in the folder dir. Links are followed inside dir only.
//
// Hugging Face keeps a model in a folder models--NAME, where the files of snapshots/REVISION are
// links to those in blobs. Who names a snapshot there has given that folder.
func OpenIn(dir, name string, most int64) (*os.File, int64, error) {
	f, err := openRooted(dir, name)
	if errors.Is(err, ErrNotRegular) {
		if model, snapshot := ofCache(dir); model != "" {
			f, err = openRooted(model, filepath.Join(snapshot, name))
		}
	}
	if err != nil {
		return nil, 0, err
	}
	return regular(f, most)
}

// openRooted opens a file in the folder dir, of any kind, to read it.
func openRooted(dir, name string) (*os.File, error) {
	dir = directory(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, refusal(dir+name, cause(err))
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err == nil {
		return f, nil
	}
	err = cause(err)
	info, e := root.Lstat(name)
	switch {
	case e != nil || errors.Is(err, fs.ErrNotExist):
	case info.Mode()&fs.ModeSymlink != 0:
		err = fmt.Errorf("%w, but a link, and links are followed only inside %s: %w", ErrNotRegular, filepath.Clean(dir), err)
	case !info.Mode().IsRegular():
		err = ErrNotRegular
	}
	return nil, refusal(dir+name, err)
}

// cause is an error of the system without the name that it is about.
func cause(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// OpenDir opens a directory.
func OpenDir(name string) (*os.File, error) { return os.Open(directory(name)) }

// directory is name so that nothing but a directory can be opened by it: a pipe would be waited for.
func directory(name string) string {
	if name == "" {
		name = "."
	}
	if os.IsPathSeparator(name[len(name)-1]) {
		return name
	}
	return name + string(filepath.Separator)
}

// ofCache returns the folder of a model in Hugging Face's cache, and where in it dir is; "" if dir
// is no snapshot there.
func ofCache(dir string) (model, snapshot string) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", ""
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", ""
	}
	above := filepath.Dir(dir)
	model = filepath.Dir(above)
	if filepath.Base(above) != "snapshots" || !strings.HasPrefix(filepath.Base(model), "models--") {
		return "", ""
	}
	return model, filepath.Join("snapshots", filepath.Base(dir))
}
