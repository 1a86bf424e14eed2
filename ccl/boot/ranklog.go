package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/goccl/goccl/internal/files"
)

// rankLog is the file with the standard output and standard error of one rank, as they come.
type rankLog struct {
	mu     sync.Mutex
	f      *os.File
	failed error
}

// openLogs makes the file of each rank, if they are wanted.
func (s *spawn) openLogs() error {
	if s.Logs == "" {
		return nil
	}
	if err := os.MkdirAll(s.Logs, 0o777); err != nil {
		return fault(Argument, "the directory for the ranks' logs cannot be made: %v", err)
	}
	for r := range s.logs {
		f, err := files.Create(filepath.Join(s.Logs, fmt.Sprintf("rank-%d.log", r)))
		if err != nil {
			s.closeLogs()
			return fault(Argument, "the log of rank %d cannot be made: %v", r, err)
		}
		s.logs[r] = &rankLog{f: f}
	}
	return nil
}

// write writes what the rank has written. A full disk must not end the rank: Spawn tells of it in
// the end, if no rank has failed.
func (l *rankLog) write(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		_, l.failed = l.f.Write(p)
	}
}

// logFailed is the error for logs that are not complete.
func (s *spawn) logFailed() error {
	for r, l := range s.logs {
		if l == nil {
			continue
		}
		l.mu.Lock()
		err := l.failed
		l.mu.Unlock()
		if err != nil {
			return fault(System, "all ranks ended well, but the log of rank %d is not complete: %v", r, err)
		}
	}
	return nil
}

func (s *spawn) closeLogs() {
	for _, l := range s.logs {
		if l != nil {
			l.f.Close()
		}
	}
}
