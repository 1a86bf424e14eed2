package ccl

import "github.com/goccl/goccl/internal/blame"

// blame tells the launcher of this host which rank of the job e names as the cause. A mismatch has none: two ranks
// disagree.
func (r reporter) blame(e *Error) {
	switch e.Code {
	case ErrAborted, ErrRankLost, ErrClosed:
		if e.Peer >= 0 && r.c.life.ready.Load() {
			blame.Name(r.c.eng.World(e.Peer))
		}
	}
}
