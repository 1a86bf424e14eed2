package mesh

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl"
)

// Tie makes Comms fail together: when one of them fails, the others fail with its cause, which
// names the rank of the job at fault. A lost rank fails the Comms that have it as ErrRankLost, and
// the others as ErrAborted.
//
// untie ends that, and returns when it has. A failure that came before it is still passed on, so a program that
// leaves because of an error can untie and close its Comms at once.
func Tie(comms ...*ccl.Comm) (untie func()) {
	t := &knot{comms: comms, stop: make(chan struct{})}
	for _, c := range comms {
		t.watchers.Go(func() {
			select {
			case <-c.Done():
				t.once.Do(func() { t.spread(c) })
			case <-t.stop:
			}
		})
	}
	return sync.OnceFunc(func() {
		close(t.stop)
		for _, c := range comms {
			if c.Err() != nil {
				t.once.Do(func() { t.spread(c) })
				break
			}
		}
		t.watchers.Wait()
	})
}

// knot is Comms that are tied.
type knot struct {
	comms    []*ccl.Comm
	stop     chan struct{}
	once     sync.Once
	watchers sync.WaitGroup
}

// ownGrace is how long a Comm that may have a lost rank has to fail of that by itself, with the better error. The news
// comes to all Comms of a process at once.
const ownGrace = 10 * time.Millisecond

// spread aborts the others because c has failed.
func (t *knot) spread(c *ccl.Comm) {
	cause := causeOf(c)
	if errors.Is(c.Err(), ccl.ErrRankLost) {
		grace := time.NewTimer(ownGrace)
		defer grace.Stop()
	wait:
		for _, o := range t.comms {
			select {
			case <-o.Done():
			case <-grace.C:
				break wait
			}
		}
	}
	for _, o := range t.comms {
		if o != c && o.Err() == nil {
			o.Abort(cause)
		}
	}
}

// causeOf is why c failed, in few words: 97 bytes of a cause come to other ranks. It begins with the rank at fault, as
// a rank of the job.
func causeOf(c *ccl.Comm) error {
	var e *ccl.Error
	if !errors.As(c.Err(), &e) {
		return errors.New("another Comm of the mesh failed")
	}
	if e.Code == ccl.ErrAborted && e.Err != nil {
		return errors.New(e.Err.Error()) // of a Comm before this one, or of who called Abort
	}
	at := e.Peer
	if at >= 0 && at < len(e.World) {
		at = e.World[at]
	}
	switch {
	case at < 0 && e.Code == ccl.ErrTimeout && e.Err != nil:
		return errors.New(e.Err.Error()) // which names a rank that this Comm does not have, where it is known
	case at < 0:
		return fmt.Errorf("%s: %s", c.Name(), e.Code.Error())
	case e.Code == ccl.ErrRankLost:
		return fmt.Errorf("world rank %d lost (%s)", at, c.Name())
	case e.Code == ccl.ErrClosed:
		return fmt.Errorf("world rank %d has closed %s", at, c.Name())
	case e.Code == ccl.ErrAborted:
		return fmt.Errorf("world rank %d has aborted %s", at, c.Name())
	}
	return fmt.Errorf("world rank %d: %s (%s)", at, e.Code.Error(), c.Name())
}
