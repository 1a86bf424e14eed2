package boot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/files"
)

// File returns the bootstrap of size ranks that share a directory. Rank 0 writes a file there in
// one atomic step, readable by its owner only: where it listens, and a secret made for this job,
// unless the environment has one. Everything else goes over TCP, as with [TCP]. The file is removed
// when all have joined.
//
// A job that died may have left its file behind. Such a file leads nowhere, or to a process that
// does not know its secret; the ranks then read it again until rank 0 has replaced it. Two jobs
// that run at the same time in one directory need different names.
//
// In a directory where all users may write, and none may remove what is another's, as /tmp, rank 0
// makes a subdirectory of its user's own, goccl-UID.
func File(ctx context.Context, dir, job string, rank, size int) (*Boot, error) {
	if err := noContext(ctx); err != nil {
		return nil, err
	}
	m := &joinConfig{job: job, rank: rank, size: size}
	if err := m.check(); err != nil {
		return nil, err
	}
	m.store(dir, Launch{Job: job, Nodes: -1})
	if err := m.settle(nil); err != nil {
		return nil, asError(err).of(rank, size)
	}
	return m.join(ctx)
}

// store makes the place that rank 0 publishes in dir the place to meet.
func (m *joinConfig) store(dir string, l Launch) {
	sum := sha256.Sum256([]byte(m.job))
	name := "goccl-" + hex.EncodeToString(sum[:8])
	m.made = true
	m.host = hostSocket(m.job, filepath.Join(dir, name), m.hostID)
	m.find = func() (point, error) {
		n, err := findRootAddr(dir, name)
		if err != nil {
			return point{}, err
		}
		p := point{network: "tcp", addrs: n.Addrs, secret: m.secret}
		if p.secret.IsZero() {
			p.secret = auth.Given(n.Secret)
		}
		return p, nil
	}
	m.listen = func(ctx context.Context) (net.Listener, auth.Secret, error) {
		if err := sharedDir(dir); err != nil {
			return nil, auth.Secret{}, err
		}
		in, err := makeStoreDir(dir)
		if err != nil {
			return nil, auth.Secret{}, fault(System, "rank 0 cannot write to the shared directory: %v", err)
		}
		path := filepath.Join(in, name)
		listener, n, err := m.announceAt(ctx, l.Nodes == 1)
		if err != nil {
			return nil, auth.Secret{}, err
		}
		if err := replaceFile(path, n.encode()); err != nil {
			listener.Close()
			return nil, auth.Secret{}, fault(System, "rank 0 cannot write to the shared directory: %v", err)
		}
		m.met = func() {
			if now, err := readRootAddr(path); err == nil && string(now.encode()) == string(n.encode()) {
				os.Remove(path)
			}
		}
		if m.secret.IsZero() {
			return listener, auth.Given(n.Secret), nil
		}
		return listener, m.secret, nil
	}
}

// sharedDir refuses a directory that is not there, or is none.
func sharedDir(dir string) error {
	if info, err := os.Stat(dir); err != nil {
		return fault(Argument, "the shared directory does not exist on host %s: %v", selfJoin(0, 1).Host, err)
	} else if !info.IsDir() {
		return fault(Argument, "%s is not a directory", dir)
	}
	return nil
}

// disk is where files are written and read, and what a test has go wrong there.
type disk struct {
	fault func(op, path string) error // asked before each step; nil: none fails
}

func (d *disk) ask(op, path string) error {
	if d.fault == nil {
		return nil
	}
	return d.fault(op, path)
}

// replaceFile replaces the file at path in one step, by one of this user's alone: an earlier job
// may have left it.
func replaceFile(path string, text []byte) error { return new(disk).replace(path, text) }

func (d *disk) replace(path string, text []byte) error {
	name, err := d.writeBeside(path, text)
	if err != nil {
		return err
	}
	if err = d.ask("rename", path); err == nil {
		err = os.Rename(name, path)
	}
	if err != nil {
		os.Remove(name)
	}
	return err
}

// writeBeside writes text to a new file in the directory of path, of this user's alone.
func (d *disk) writeBeside(path string, text []byte) (name string, err error) {
	if err := d.ask("create", path); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return "", err
	}
	if err = d.ask("write", f.Name()); err == nil {
		_, err = f.Write(text)
	}
	if err == nil {
		err = d.ask("sync", f.Name())
	}
	if err == nil {
		err = f.Sync() // other hosts look at it next
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
	}
	return f.Name(), err
}

// findRootAddr reads the file of that name in dir, or in what is this user's there.
func findRootAddr(dir, name string) (n rootAddr, err error) {
	err = fault(System, "rank 0 has not written %s yet", filepath.Join(dir, name))
	for _, in := range storeDirs(dir) {
		if n, err = readRootAddr(filepath.Join(in, name)); err == nil {
			return n, nil
		}
	}
	return rootAddr{}, err
}

// readRootAddr reads the file at path, if it is this user's alone.
func readRootAddr(path string) (rootAddr, error) {
	b, err := readPrivate(path, maxPMILine)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return rootAddr{}, fault(System, "the shared directory does not exist on host %s: %v", selfJoin(0, 1).Host, err)
		}
		return rootAddr{}, fault(System, "rank 0 has not written %s yet", path)
	} else if err != nil {
		return rootAddr{}, orFault(err, "what rank 0 has written cannot be read")
	}
	return parseRootAddr(b)
}

// readPrivate reads the file at path, if it is this user's alone and has at most limit bytes.
// Others may be able to leave something else there: no pipe holds it up.
func readPrivate(path string, limit int64) ([]byte, error) {
	f, _, err := files.OpenIn(filepath.Dir(path), filepath.Base(path), limit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// NFS remembers for half a minute that a file is not there, unless its directory is looked at.
		if d, err := files.OpenDir(filepath.Dir(path)); err == nil {
			d.Readdirnames(1)
			d.Close()
		}
		return nil, err
	case errors.Is(err, files.ErrNotRegular):
		return nil, fault(Unauthorized, "%s is not a regular file; remove it", path)
	case err != nil:
		return nil, err
	}
	defer f.Close()
	if err := private(f); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
