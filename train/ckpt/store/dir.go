package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/internal/same"
)

// Dir is a Store in the directory of that name, one file for each object. A file is written beside
// its name, synced, and renamed or linked, so the file system must have hard links. Directories are
// made as they are needed, so no object may be called as the beginning of another's path. A disk that
// answers nothing has five minutes for what Put and ReadAt ask of it. Dir implements Sweeper.
type Dir string

// unended is the end of the name of a file that a Put is writing, or was.
var unended = regexp.MustCompile(`\.put-[0-9a-f]{16}$`)

// checked is an error unless name is one of an object.
func checked(op, name string) error {
	if !fs.ValidPath(name) || name == "." || unended.MatchString(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return nil
}

func (d Dir) file(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

// none reports whether name is a directory, or below a file: no object is there.
func (d Dir) none(name string) bool {
	info, err := os.Lstat(d.file(name))
	return err == nil && info.IsDir() || errors.Is(err, syscall.ENOTDIR)
}

// Put is Store's.
func (d Dir) Put(ctx context.Context, name string, size int64, fresh bool, write func(io.Writer) error) (err error) {
	if err := errors.Join(checked("put", name), ctx.Err()); err != nil {
		return err
	}
	to := d.file(name)
	if err := makeAll(filepath.Dir(to)); err != nil {
		return err
	}
	b := make([]byte, 8)
	_, _ = rand.Read(b) // which never fails
	tmp := to + ".put-" + hex.EncodeToString(b)
	var f *os.File
	err = same.Do(tmp, func() (err error) { f, err = files.New(tmp, os.O_WRONLY, 0o666); return err })
	if err != nil {
		return err
	}
	w := &until{ctx, f, 0}
	err = write(w)
	if err == nil && w.n != size {
		err = fmt.Errorf("put %s: %d bytes were written, and %d announced", name, w.n, size)
	}
	if err == nil {
		err = same.Do(tmp, f.Sync)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) { // Sweep removes the file
		go f.Close()
		return err
	}
	failed := errors.Join(err, same.Do(tmp, f.Close))
	return same.Do(to, func() error {
		err := failed
		if err == nil && fresh {
			err = os.Link(tmp, to)
		} else if err == nil {
			err = os.Rename(tmp, to)
		}
		if fresh || err != nil {
			_ = os.Remove(tmp)
		}
		if err != nil {
			return err
		}
		return syncDir(filepath.Dir(to))
	})
}

// until is a writer to a file that ends with a context.
type until struct {
	ctx context.Context
	f   *os.File
	n   int64
}

// dirty is about what may be in the page cache: what a slow disk can take while a sync is waited for.
const dirty = 512 << 20

func (u *until) Write(b []byte) (int, error) {
	for done := 0; done < len(b); {
		if err := u.ctx.Err(); err != nil {
			return done, err
		}
		some := b[done:min(len(b), done+4<<20)]
		after := u.n + int64(len(some))
		err := same.Do(u.f.Name(), func() error {
			_, err := u.f.Write(some)
			if err == nil && u.n/dirty != after/dirty {
				err = u.f.Sync()
			}
			return err
		})
		if err != nil {
			return done, err
		}
		done, u.n = done+len(some), after
	}
	return len(b), nil
}

// makeAll makes dir and what is missing above it, each durable before what it holds.
func makeAll(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeAll(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// syncDir makes names in dir durable. Windows has no such call.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// inDir is a file as an Object.
type inDir struct {
	*os.File
	size int64
}

func (o inDir) Size() int64 { return o.size }

func (o inDir) ReadAt(b []byte, at int64) (int, error) { return same.ReadAt(o.File, b, at) }

// Open is Store's.
func (d Dir) Open(ctx context.Context, name string) (Object, error) {
	if err := errors.Join(checked("open", name), ctx.Err()); err != nil {
		return nil, err
	}
	f, size, err := files.OpenIn(string(d), filepath.FromSlash(name), math.MaxInt64)
	if err != nil && d.none(name) {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	return inDir{f, size}, nil
}

// List is Store's.
func (d Dir) List(ctx context.Context, prefix string) (list []Entry, err error) {
	err = d.walk(ctx, prefix, func(name string, e fs.DirEntry) error {
		if unended.MatchString(name) {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // deleted since then
			return nil
		}
		if err == nil {
			list = append(list, Entry{name, info.Size()})
		}
		return err
	})
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// walk calls f with each file whose name begins with prefix.
func (d Dir) walk(ctx context.Context, prefix string, f func(name string, e fs.DirEntry) error) error {
	from := path.Dir(prefix + "x") // the directory that all of them are in
	if !fs.ValidPath(from) {
		return &fs.PathError{Op: "list", Path: prefix, Err: fs.ErrInvalid}
	}
	err := filepath.WalkDir(d.file(from), func(file string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		name, err := filepath.Rel(string(d), file)
		name = filepath.ToSlash(name)
		if err != nil || e.IsDir() || !strings.HasPrefix(name, prefix) {
			return err
		}
		return f(name, e)
	})
	return err
}

// Delete is Store's.
func (d Dir) Delete(ctx context.Context, name string) error {
	if err := errors.Join(checked("delete", name), ctx.Err()); err != nil {
		return err
	}
	file := d.file(name)
	if d.none(name) {
		return nil
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := syncDir(filepath.Dir(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Sweep is Sweeper's.
func (d Dir) Sweep(ctx context.Context, prefix string, gone func(name string) bool) error {
	return d.walk(ctx, prefix, func(name string, _ fs.DirEntry) error {
		of := unended.ReplaceAllString(name, "")
		if of == name || !gone(of) {
			return nil
		}
		if err := os.Remove(d.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
