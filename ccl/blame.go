package ccl

import (
	"os"

	"github.com/goccl/goccl/internal/blame"
	"github.com/goccl/goccl/internal/environ"
)

// sayUnused tells the launcher of this host that its process was a spare that nobody needed.
func (r *reserve) sayUnused() {
	// As below: this process has started a job of its own, perhaps. Whoever has come with a job that
	// grew has come by its store.
	if size, err := environ.Size.From(os.Getenv); r.opt.born > 0 || err == nil && size == r.topo.Size() {
		blame.Unused()
	}
}

// blame tells the launcher of this host which rank of the job e names as the cause. A mismatch has none: two ranks
// disagree. Of a timeout it is the late rank.
func (r reporter) blame(e *Error) {
	if r.c.opt.pool != nil {
		return
	}
	switch e.Code {
	case ErrAborted, ErrRankLost, ErrClosed, ErrTimeout:
		if e.Peer < 0 || !r.c.life.ready.Load() {
			return
		}
		// The launcher's numbers are those of a job that has one rank a process and was started by it.
		if size, err := environ.Size.From(os.Getenv); err == nil && size == r.c.eng.Control().Site.Job.World.Topo.Size() {
			blame.Name(r.c.eng.World(e.Peer))
		}
	}
}
