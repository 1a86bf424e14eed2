//go:build nccl || rccl || oneccl

package harness

import "time"

// clockOf makes a clock of two events on s.
func clockOf[S any, E interface {
	Record(S) error
	Synchronize() error
	Since(E) (time.Duration, error)
}](s S, from, to E) clock {
	return clock{
		start: func() error { return from.Record(s) },
		stop:  func() error { return to.Record(s) },
		took: func() (time.Duration, error) {
			if err := to.Synchronize(); err != nil {
				return 0, err
			}
			return to.Since(from)
		},
	}
}
