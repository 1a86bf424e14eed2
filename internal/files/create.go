package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// New makes a file that is not there yet. flag says how it is opened, such as os.O_WRONLY.
func New(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag|os.O_CREATE|os.O_EXCL, perm)
}

// Create makes a file, or empties one of this user's. What is written goes to its end. A character
// device may be named, too, and a descriptor that this process was given: what that leads to is not
// emptied.
func Create(name string) (*os.File, error) {
	if f, is := given(name, os.O_RDONLY); is {
		return f, nil
	}
	f, _, err := own(name, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = f.Truncate(0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Append makes a file, or opens one of this user's as it is, to read it and to write to its end. A
// character device may be named, too.
func Append(name string) (*os.File, error) {
	f, _, err := own(name, os.O_RDWR|os.O_APPEND)
	return f, err
}

// Write writes a file that Create makes.
func Write(name string, data []byte) error {
	f, err := Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Writable returns the error that Create would. What is there stays as it is.
func Writable(name string) error {
	if f, is := given(name, os.O_RDONLY); is {
		return f.Close()
	}
	f, fresh, err := own(name, os.O_WRONLY)
	if err != nil {
		return err
	}
	err = f.Close()
	if fresh {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// own opens a file of this user's, and makes it if there is none: then it is fresh.
func own(name string, flag int) (f *os.File, fresh bool, err error) {
	if name == os.DevNull { // which Windows would make
		f, err = os.OpenFile(name, flag, 0)
		return f, false, err
	}
	for range 8 {
		if f, err = New(name, flag, 0o666); !errors.Is(err, fs.ErrExist) {
			return f, err == nil, err
		}
		// Else it was removed since then, or another file was put in its place.
		if f, err = present(name, flag); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errReplaced) {
			return f, false, err
		}
	}
	return nil, false, err
}

// present opens a file of this user's that is there. It is looked at when it is open: first what
// was opened, then whether that has the name itself, or a link that leads to it.
func present(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, flag|noWait|noFollow, 0)
	if err != nil {
		if info, e := os.Lstat(name); e == nil && !info.Mode().IsRegular() {
			err = refusal(name, notRegular(info))
		}
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil {
		err = refuse(name, opened)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// refuse is an error unless opened, which was opened by name, is a regular file of this user's
// alone, or a character device.
func refuse(name string, opened fs.FileInfo) error {
	named, err := os.Lstat(name)
	device := opened.Mode()&fs.ModeCharDevice != 0 // which root alone makes
	switch {
	case err != nil:
		return err
	case !opened.Mode().IsRegular() && !device:
		return refusal(name, notRegular(opened))
	case !os.SameFile(opened, named):
		return refusal(name, notRegular(named))
	}
	if err := others(name, opened); err != nil && !device {
		return refusal(name, fmt.Errorf("%w: remove it, or give another name", err))
	}
	return nil
}

var errReplaced = errors.New("another file was put in its place just now")

func notRegular(info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%w, but a link: give the name that it leads to", ErrNotRegular)
	case info.Mode().IsRegular():
		return errReplaced
	}
	return ErrNotRegular
}
