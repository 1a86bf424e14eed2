package ccl

import (
	"context"
	"crypto/rand"
	"sync/atomic"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/lobby"
)

// tie has the lead hear at once where a newcomer ends, or gives up, that has a seat in a meeting or may get one: by the
// newcomer's connection to a store that notices its end. Else the lead would wait for it until the meeting's time is
// over. It is made while the newcomer waits for the meeting, so it takes no time of that.
type tie struct {
	made chan struct{} // closed once line and end are known
	line string        // "" where the store does not notice
	end  func(lost bool)
	over atomic.Bool // end was called, or is: no lock is held over it, since it waits for the store
}

func newTie(ctx context.Context, s boot.Store) *tie {
	t := &tie{made: make(chan struct{})}
	w, is := s.(lobby.Watcher)
	if !is {
		close(t.made)
		return t
	}
	go func() {
		defer close(t.made)
		short, cancel := lived.Within(ctx, answerLimit/2) // a store that is dark says so to the newcomer itself
		defer cancel()
		line := rand.Text()
		if end, err := w.SetWhenLost(short, lobby.Gone(line)); err == nil {
			t.line, t.end = line, end
		}
	}()
	return t
}

// tell is me, with what the lead finds t by.
func (t *tie) tell(me lobby.Guest) lobby.Guest {
	<-t.made
	me.Line = t.line
	return me
}

// stays is for a newcomer that is a rank now, whose end the job sees by itself. The others do not wait until the store
// knows that.
func (t *tie) stays() { go t.cut(false) }

// left is the end of a meeting for the newcomer: it is a rank, or waits for the next one, or fails.
func (t *tie) left(moved bool, err error) {
	if moved {
		t.stays()
		return
	}
	t.cut(err != nil)
}

// cut ends t, unless that has been done. lost: the newcomer does not take part in the meeting.
func (t *tie) cut(lost bool) {
	<-t.made
	if t.end != nil && !t.over.Swap(true) {
		t.end(lost)
	}
}
