package boot

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/auth"
)

// fileStore is a Store in a directory: a file for each key, written in one atomic step. A number is a
// file for each time that it was changed, the next of which one process alone can make.
type fileStore struct {
	dir string
	party
	disk

	mu   sync.Mutex
	last map[string]uint64 // how often a number has been changed, as far as it is known
}

// FileStore returns the store in a directory that all processes share. Its files are readable by
// their owner alone. Each carries a proof that a process with the secret has written it for this key
// and for the job that GOCCL_JOB names: what another job has left there, or a stranger, is an error.
// Hex digits of the secret stand for their bytes, as they do in GOCCL_SECRET.
// A nil secret is that of the environment, or one that the first process makes, in a file as private.
// Files stay until the directory is removed, so jobs need directories of their own.
//
// In a directory where all users may write, and none may remove what is another's, as /tmp, the store
// is the subdirectory goccl-UID of its user. It is an error if that is somebody else's.
func FileStore(dir string, secret []byte) (Store, error) {
	if err := sharedDir(dir); err != nil {
		return nil, err
	}
	in, err := oneStoreDir(dir)
	if err != nil {
		return nil, orFault(err, "this host cannot write to the shared directory")
	}
	s := &fileStore{dir: in, last: map[string]uint64{}}
	if len(secret) == 0 {
		if secret, err = auth.In(os.Environ()); err != nil {
			return nil, secretFault(err)
		}
	}
	if s.secret = auth.Given(secret); s.secret.IsZero() {
		err = s.makeSecret()
	}
	if err := cmp.Or(err, s.named(os.Environ())); err != nil {
		return nil, err
	}
	return s, nil
}

// makeSecret makes the secret of a job that has none, or takes that of the process which came first.
func (s *fileStore) makeSecret() error {
	path, secret := filepath.Join(s.dir, "goccl-store-secret"), auth.NewSecret()
	made, err := s.create(path, []byte(hex.EncodeToString(secret)))
	switch {
	case err != nil:
		return orFault(err, "this host cannot write to the shared directory")
	case made:
		s.secret = auth.Given(secret)
		return nil
	}
	s.secret, err = readSecretFile(path)
	return err
}

// path is where key is, nth says which of a number; 0 is a value.
func (s *fileStore) path(key string, nth uint64) string {
	sum := sha256.Sum256([]byte(key))
	name := "goccl-store-" + hex.EncodeToString(sum[:16])
	if nth > 0 {
		name += "." + strconv.FormatUint(nth, 10)
	}
	return filepath.Join(s.dir, name)
}

// file is what the file of a value holds: a proof that it was written for key, 32 bytes; the length
// of the job's name, 2; that, and the value.
func (s *fileStore) file(key string, nth uint64, value []byte) []byte {
	text := binary.BigEndian.AppendUint16(make([]byte, sha256.Size), uint16(len(s.job)))
	text = append(append(text, s.job...), value...)
	copy(text, s.proof(key, nth, text[sha256.Size:]))
	return text
}

// parse returns the value in what path holds, the file of key.
func (s *fileStore) parse(key string, nth uint64, path string, text []byte) ([]byte, error) {
	if len(text) < fileHead || !hmac.Equal(text[:sha256.Size], s.proof(key, nth, text[sha256.Size:])) {
		return nil, fault(Unauthorized, "the store's value of %s, in %s, is not of this job: it is damaged, or was written with another secret. Use another directory for each job", key, path)
	}
	n := fileHead + int(binary.BigEndian.Uint16(text[sha256.Size:]))
	if n > len(text) {
		return nil, fault(System, "the store's value of %s, in %s, is cut off", key, path)
	}
	if job := string(text[fileHead:n]); job != s.job {
		return nil, fault(Argument, "the store in %s: %s", s.dir, otherJob(job, s.job))
	}
	return text[n:], nil
}

const fileHead = sha256.Size + 2

// proof is that said was written for key.
func (s *fileStore) proof(key string, nth uint64, said []byte) []byte {
	h := hmac.New(sha256.New, s.secret.Bytes())
	h.Write([]byte("goccl store\x00"))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(key))))
	h.Write([]byte(key))
	h.Write(binary.BigEndian.AppendUint64(nil, nth))
	h.Write(said)
	return h.Sum(nil)
}

// read returns what is in the file of key, errNone if there is no such file.
func (s *fileStore) read(key string, nth uint64) ([]byte, error) {
	path := s.path(key, nth)
	b, err := []byte(nil), s.ask("read", path)
	if err == nil {
		b, err = readPrivate(path, MaxStored+fileHead+mostName+1)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(s.dir); err != nil {
			return nil, fault(System, "the store's directory is gone: %v", err)
		}
		return nil, errNone
	case err != nil:
		return nil, orFault(err, "the store cannot read "+key)
	}
	return s.parse(key, nth, path, b)
}

var errNone = errors.New("there is no value")

// Set gives key a value.
func (s *fileStore) Set(ctx context.Context, key string, value []byte) error {
	if err := checkKey(ctx, key, len(value)); err != nil {
		return err
	}
	if err := s.replace(s.path(key, 0), s.file(key, 0, value)); err != nil {
		return orFault(err, "the store cannot set "+key)
	}
	return nil
}

const (
	firstLook = time.Millisecond
	longLook  = 50 * time.Millisecond // between two
)

// Get returns the value of key, and looks for it until there is one.
func (s *fileStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := checkKey(ctx, key, 0); err != nil {
		return nil, err
	}
	for wait := firstLook; ; wait = min(wait*3/2, longLook) {
		v, err := s.read(key, 0)
		if !errors.Is(err, errNone) {
			return v, err
		}
		if !pause(ctx, wait) {
			return nil, ended(ctx.Err(), "the context ended before "+key+" had a value in the store")
		}
	}
}

// Wait waits for all keys.
func (s *fileStore) Wait(ctx context.Context, keys ...string) error { return waitAll(ctx, s, keys) }

// Add changes a number.
func (s *fileStore) Add(ctx context.Context, key string, n int64) (int64, error) {
	if err := checkKey(ctx, key, 0); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		sum, nth, err := s.sum(key)
		if err != nil || n == 0 {
			return sum, err
		}
		if err := ctx.Err(); err != nil {
			return 0, ended(err, "the context ended before "+key+" was changed in the store")
		}
		if sum, err = plus(key, sum, n); err != nil {
			return 0, err
		}
		text := binary.BigEndian.AppendUint64(nil, uint64(sum))
		made, err := s.create(s.path(key, nth+1), s.file(key, nth+1, text))
		if err != nil {
			return 0, orFault(err, "the store cannot change "+key)
		}
		if made {
			s.last[key] = nth + 1
			return sum, nil
		}
	}
}

// sum is the number of key, and how often it has been changed. s.mu is held.
func (s *fileStore) sum(key string) (sum int64, nth uint64, err error) {
	for nth = max(s.last[key], 1); ; nth++ {
		b, err := s.read(key, nth)
		switch {
		case errors.Is(err, errNone):
			return sum, nth - 1, nil
		case err != nil:
			return 0, 0, err
		case len(b) != 8:
			return 0, 0, fault(System, "the store's number of %s has %d bytes", key, len(b))
		}
		sum, s.last[key] = int64(binary.BigEndian.Uint64(b)), nth
	}
}

// create makes the file at path, with that text from the start. It is false where there is one.
func (d *disk) create(path string, text []byte) (made bool, err error) {
	name, err := d.writeBeside(path, text)
	if err != nil {
		return false, err
	}
	defer os.Remove(name)
	if err := d.ask("link", path); err != nil {
		return false, err
	}
	return claim(name, path, os.Link)
}

// claim gives file the name path as well, where nothing has it. That is atomic on NFS, too, but an
// answer that is lost there is asked for again, and then says that the name is taken: by file
// itself.
func claim(file, path string, link func(file, path string) error) (made bool, err error) {
	err = link(file, path)
	if errors.Is(err, fs.ErrExist) {
		ours, err := os.Stat(file)
		if err != nil {
			return false, err
		}
		there, err := os.Stat(path)
		return err == nil && os.SameFile(ours, there), err
	}
	return err == nil, err
}
