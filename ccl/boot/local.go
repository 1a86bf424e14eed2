package boot

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/goccl/goccl/internal/auth"
)

// Local returns the bootstraps of n ranks that are goroutines of this process. hosts, if given, is
// the HostID of each rank: ranks with the same HostID share a host. Ranks beyond the end of hosts
// have its last value.
func Local(n int, hosts ...string) []*Boot {
	if n < 1 {
		return nil
	}
	w := &world{values: make([][]byte, n), left: make([]chan struct{}, n), done: make(chan struct{})}
	secret := auth.Given(auth.NewSecret())
	boots := make([]*Boot, n)
	for r := range boots {
		w.left[r] = make(chan struct{})
		b := &Boot{rank: r, size: n, secret: secret, addr: loopback}
		if len(hosts) > 0 {
			b.hostID = hosts[min(r, len(hosts)-1)]
		}
		b.gather = func(ctx context.Context, mine []byte) ([][]byte, error) {
			ctx, cancel := limited(ctx, 0)
			defer cancel()
			return w.gather(ctx, r, mine)
		}
		b.server = seat{w, r}
		boots[r] = b
	}
	return boots
}

// world is what the ranks of one process share.
type world struct {
	mu      sync.Mutex
	values  [][]byte        // of this round; nil where not here yet
	left    []chan struct{} // closed when that rank has closed its end
	arrived int
	round   int
	table   [][]byte      // of the last complete round
	done    chan struct{} // closed when this round is complete or has failed
	err     *Error        // it has failed, for good
}

func (w *world) gather(ctx context.Context, rank int, mine []byte) ([][]byte, error) {
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return nil, w.err
	}
	w.values[rank] = append(make([]byte, 0, len(mine)), mine...) // not nil, even if empty
	w.arrived++
	if w.arrived == len(w.values) {
		w.table, w.values = w.values, make([][]byte, len(w.values))
		w.arrived, w.round = 0, w.round+1
		close(w.done)
		w.done = make(chan struct{})
		defer w.mu.Unlock()
		return slices.Clone(w.table), nil
	}
	w.blame()
	done := w.done
	w.mu.Unlock()

	select {
	case <-done:
	case <-w.left[rank]:
		return nil, fault(Closed, "closed during the call")
	case <-ctx.Done():
		w.mu.Lock()
		if done == w.done && w.err == nil { // it has not ended meanwhile
			w.fail(w.late(ctx.Err(), rank))
		}
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if done == w.done {
		return nil, w.err
	}
	// The next round cannot complete without this rank, so the table is still this one's.
	return slices.Clone(w.table), nil
}

// late is the verdict on a round that one rank's context ended.
func (w *world) late(cause error, rank int) *Error {
	e := ended(cause, "")
	e.Peer, e.Text = rank, fault(e.Code, "AllGather %d: rank %d was canceled", w.round+1, rank).Text
	if e.Code != Timeout {
		return e
	}
	for r, v := range w.values {
		if v == nil {
			e.Missing = append(e.Missing, r)
		}
	}
	e.Peer = e.Missing[0]
	e.Text = fault(e.Code, "%s AllGather %d in time: %s", absent(e.Missing, "reached"), w.round+1,
		listRanks(e.Missing)).Text
	return e
}

func (w *world) hasLeft(r int) bool {
	select {
	case <-w.left[r]:
		return true
	default:
		return false
	}
}

// blame fails a round that needs a rank which has closed.
func (w *world) blame() {
	for r, v := range w.values {
		if v == nil && w.hasLeft(r) && w.arrived > 0 && w.err == nil {
			w.fail(fault(Lost, "AllGather %d: rank %d is gone", w.round+1, r).by(r))
		}
	}
}

func (w *world) fail(e *Error) {
	w.err = e
	close(w.done)
}

// seat is one rank's place in a world.
type seat struct {
	w    *world
	rank int
}

func (s seat) refuse(e *Error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.w.err == nil {
		s.w.fail(&Error{Code: e.Code, Peer: s.rank, Text: fmt.Sprintf("rank %d gave up: %s", s.rank, e.Text)})
	}
}

func (s seat) close() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if !s.w.hasLeft(s.rank) {
		close(s.w.left[s.rank])
	}
	s.w.blame()
}
