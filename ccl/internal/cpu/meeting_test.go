package cpu

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/mail"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/auth"
)

// slowWay is that of one of two ranks in a process each.
type slowWay struct {
	me      int
	offices *[2]*mail.Office
	near    chan struct{} // while it is open, what is sent to the other rank waits, as behind large messages
	awake   chan struct{} // while it is open, so does what comes and is no small message, as in a process that is stopped
	stopped chan struct{} // says that this is so
}

func (w slowWay) Lived() time.Duration { return time.Since(slowBorn) }
func (w slowWay) Attend()              {}
func (w slowWay) Here(rank int) bool   { return rank == w.me }

func (w slowWay) Reads(int) bool {
	select {
	case <-w.awake:
	default:
		w.stopped <- struct{}{}
		<-w.awake
	}
	return w.me == 1 // so rank 0 is asked whether it reads what rank 1 has, and does not
}

func (w slowWay) Dial(ctx context.Context, from, to int) (*auth.Stream, error) {
	select {
	case <-w.near:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	a, b := auth.Pipe()
	w.offices[to].Accept(b, from, to)
	context.AfterFunc(ctx, func() { a.Close() }) // a pipe has no end of one direction, for which Close would wait
	return a, nil
}

var slowBorn = time.Now()

// slowMail is the mail of two ranks, each with its own way.
func slowMail(t *testing.T) (ways [2]slowWay, attempt [2]func(ctx context.Context) *meeting) {
	offices, c := new([2]*mail.Office), new(Comm)
	j := plane.EnterJob(t.Name(), time.Minute)
	t.Cleanup(j.Leave)
	c.rank.Site = j.Site(0)
	for r := range offices {
		ways[r] = slowWay{r, offices, make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)}
		offices[r] = mail.NewOffice(t.Context(), ways[r])
		t.Cleanup(offices[r].Close)
	}
	for r := range offices {
		a := offices[r].Open(mail.Membership{Comm: 1, Self: r, Others: []int{1 - r}, Left: func(int) bool { return false },
			Severed: func(context.Context, int, error) bool { return true }})
		attempt[r] = func(ctx context.Context) *meeting { return attemptOf(ctx, c, a, r) }
	}
	return ways, attempt
}

// attemptOf is one of rank self, of two.
func attemptOf(ctx context.Context, c *Comm, a *mail.Account, self int) *meeting {
	return &meeting{c: c, ctx: ctx, self: self, ranks: []int{0, 1}, number: uint64(self + 100), known: map[int]uint64{}, gone: map[int]*note{},
		box: letterBox{a, 0, map[*letter]bool{}, make(chan *letter, 8)}}
}

// heard waits for a note of a rank.
func heard(t *testing.T, b *letterBox, use mail.Use, from int) (n note) {
	t.Helper()
	r := b.a.Recv(b.what(use, &n), from)
	select {
	case <-r.Done():
		require.Nil(t, r.Fault())
	case <-time.After(10 * time.Second):
		require.Fail(t, "it has not come")
	}
	return n
}

// What the hub has decided reaches the others, however long it takes to get away: they wait for nothing else.
func TestVerdictIsNotTakenBack(t *testing.T) {
	for name, why := range map[string]*call.Fault{"it is made": nil, "it is not": {Code: call.Canceled, Peer: 0, Own: true}} {
		t.Run(name, func(t *testing.T) {
			ways, attempt := slowMail(t)
			close(ways[0].awake)
			close(ways[1].awake)
			m := attempt[0](t.Context())
			m.id, m.made, m.known[1] = 9, 1, 101
			ended := make(chan *call.Fault)
			go func() { ended <- m.conclude(why) }()
			time.Sleep(5 * tellFor / 2)
			close(ways[0].near)
			n := heard(t, &attempt[1](t.Context()).box, mail.SubsetNews, 0)
			assert.Equal(t, why, <-ended)
			if why == nil {
				assert.Equal(t, noteDone, n.what)
			} else {
				assert.Equal(t, noteOver, n.what)
			}
		})
	}
}

// soon is what comes out within a while.
func soon(t *testing.T, of func() *call.Fault) func() *call.Fault {
	t.Helper()
	c := make(chan *call.Fault, 1)
	go func() { c <- of() }()
	return func() *call.Fault {
		t.Helper()
		select {
		case f := <-c:
			return f
		case <-time.After(10 * time.Second):
			require.Fail(t, "it does not end")
			return nil
		}
	}
}

// A rank that gives up while the hub's process is stopped is heard of when that goes on, also if the hub then has its hello.
func TestHubHearsLaterOfALeaver(t *testing.T) {
	ways, attempt := slowMail(t)
	close(ways[0].near)
	close(ways[1].near)
	close(ways[1].awake)
	hub := attempt[0](t.Context())
	hears := soon(t, func() *call.Fault {
		defer hub.close()
		if f := hub.gather(9); f != nil {
			return f
		}
		return hub.conclude(nil)
	})
	ctx, cancel := context.WithCancel(t.Context())
	m := attempt[1](ctx)
	gives := soon(t, func() *call.Fault { defer m.close(); return m.gather(0) })
	<-ways[0].stopped
	cancel()
	assert.Equal(t, call.Canceled, gives().Code)
	close(ways[0].awake)
	f := hears()
	assert.Equal(t, call.Canceled, f.Code)
	assert.Equal(t, 1, f.Peer)
}

// A rank whose hello the hub had taken, but not read, when it gave up hears of that, however long either takes.
func TestLateHelloIsAnswered(t *testing.T) {
	ways, attempt := slowMail(t)
	close(ways[1].near)
	close(ways[1].awake)
	ctx, cancel := context.WithCancel(t.Context())
	hub := attempt[0](ctx)
	gives := soon(t, func() *call.Fault { defer hub.close(); return hub.gather(9) })
	m := attempt[1](t.Context())
	hears := soon(t, func() *call.Fault { defer m.close(); return m.gather(0) })
	<-ways[0].stopped
	cancel()
	assert.Equal(t, call.Canceled, gives().Code)
	close(ways[0].awake)
	close(ways[0].near)
	f := hears()
	assert.Equal(t, call.Canceled, f.Code)
	assert.Equal(t, 0, f.Peer)
}
