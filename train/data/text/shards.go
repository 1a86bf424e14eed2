package text

import (
	"errors"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/goccl/goccl/internal/files"
)

// mostOpen is how many files are open at once, unless more goroutines read: a corpus may have more
// files than a process may have open, which is 1024 on many systems.
const mostOpen = 64

// shards are files of which some are open.
type shards struct {
	mu     sync.Mutex
	all    []*shard
	open   []*shard // the one that was asked for last is last
	closed bool
}

// shard is a file. Its fields are guarded by the mutex, except that file stays as it is while there are users.
type shard struct {
	name  string
	info  os.FileInfo // as it was at first
	file  *os.File    // nil: it is not open
	users int
}

// add opens a file for the first time, for a user.
func (x *shards) add(name string) (*shard, error) {
	x.mu.Lock()
	x.all = append(x.all, &shard{name: name})
	x.mu.Unlock()
	return x.take(len(x.all) - 1)
}

// take opens file k, unless it is open, for a user, which calls done.
func (x *shards) take(k int) (s *shard, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s = x.all[k]; x.closed {
		return nil, os.ErrClosed
	}
	if s.file == nil {
		if err := s.begin(); err != nil {
			return nil, err
		}
	} else {
		x.open = slices.DeleteFunc(x.open, func(o *shard) bool { return o == s })
	}
	s.users++
	x.open = append(x.open, s)
	_ = x.shut(mostOpen) // what was only read is as it was
	return s, nil
}

// begin opens the file. One that was replaced since the first time is an error.
func (s *shard) begin() error {
	file, _, err := files.Open(s.name, math.MaxInt64)
	if err != nil {
		return err
	}
	if s.info == nil {
		s.info, err = file.Stat()
	} else {
		err = files.Unchanged(file, s.info)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.file = file
	return nil
}

// shut closes files without users until so many are open, those first that were not asked for longest.
func (x *shards) shut(most int) (err error) {
	over := len(x.open) - most
	x.open = slices.DeleteFunc(x.open, func(s *shard) bool {
		if over <= 0 || s.users > 0 {
			return false
		}
		over--
		err = errors.Join(err, s.file.Close())
		s.file = nil
		return true
	})
	return err
}

// done ends a use.
func (x *shards) done(s *shard) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s.users--; x.closed && s.users == 0 {
		_ = x.shut(0)
	}
}

// close closes all files without users; the last user of another closes that.
func (x *shards) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	return x.shut(0)
}
