package lobby

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// board is a Store in memory.
type board struct {
	mu      sync.Mutex
	values  map[string][]byte
	numbers map[string]int64
	news    chan struct{}
}

func newBoard() *board {
	return &board{values: map[string][]byte{}, numbers: map[string]int64{}, news: make(chan struct{})}
}

func (b *board) Set(_ context.Context, key string, value []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.values[key] = value
	close(b.news)
	b.news = make(chan struct{})
	return nil
}

func (b *board) Get(ctx context.Context, key string) ([]byte, error) {
	for {
		b.mu.Lock()
		v, ok := b.values[key]
		news := b.news
		b.mu.Unlock()
		if ok {
			return v, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (b *board) Add(_ context.Context, key string, n int64) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.numbers[key] += n
	return b.numbers[key], nil
}

const long = 30 * time.Second

// A lead calls, and each guest hears its own rank; one that comes later waits for the next generation, which it is in.
func TestGenerations(t *testing.T) {
	ctx, s := t.Context(), newBoard()
	type seat struct {
		g     int64
		mine  int
		seats *Seats
	}
	guest := func(pid int) <-chan seat {
		out := make(chan seat, 1)
		go func() {
			last, err := Current(ctx, s)
			g := int64(0)
			if err == nil {
				g, err = Next(ctx, s, last, true)
			}
			if err == nil {
				var one seat
				one.g = g
				one.seats, one.mine, err = Answer(ctx, s, g, Guest{Host: "h", PID: pid}, long)
				out <- one
			}
			if err != nil {
				close(out)
			}
		}()
		return out
	}
	came := func(n int) {
		require.Eventually(t, func() bool { w, err := Waiting(ctx, s); return err == nil && w == n }, long, time.Millisecond)
	}
	for g := int64(1); g < 4; g++ {
		a, b := guest(1), guest(2)
		came(2)
		got, guests, err := Call(ctx, s, 0, long)
		require.NoError(t, err)
		require.Equal(t, g, got)
		require.Len(t, guests, 2)
		late := guest(3)
		came(1) // of the next
		seats := &Seats{Addr: "a:1", Secret: []byte("x"), Size: 5, Spares: 1, Limit: time.Second}
		for _, one := range guests {
			seats.Ranks = append(seats.Ranks, map[int]int{1: 4, 2: -1}[one.PID])
		}
		require.NoError(t, Seat(ctx, s, g, seats))
		require.Equal(t, seat{g, 4, seats}, <-a)
		require.Equal(t, seat{g, -1, seats}, <-b)
		g++
		_, guests, err = Call(ctx, s, 0, long)
		require.NoError(t, err)
		require.Equal(t, []Guest{{Host: "h", PID: 3}}, guests)
		require.NoError(t, Seat(ctx, s, g, &Seats{Ranks: []int{0}, Size: 1}))
		require.Equal(t, 0, (<-late).mine)
	}
}

// A guest that has died costs one call its limit; those that answer are seated all the same.
func TestDeadGuest(t *testing.T) {
	ctx, s := t.Context(), newBoard()
	gone, end := context.WithCancel(ctx)
	go Next(gone, s, 0, true)
	require.Eventually(t, func() bool { w, _ := Waiting(ctx, s); return w == 1 }, long, time.Millisecond)
	end()
	_, guests, err := Call(ctx, s, 0, 20*time.Millisecond)
	require.NoError(t, err)
	require.Empty(t, guests)
	w, err := Waiting(ctx, s)
	require.NoError(t, err)
	require.Zero(t, w)
}

// A guest that dies between saying that it has come and saying who it is hides nobody behind it; it keeps its place.
func TestGuestDiesBetween(t *testing.T) {
	for _, dies := range []int{1, 2, 3} {
		ctx, s := t.Context(), newBoard()
		seats := map[int]chan int{}
		for k := 1; k <= 3; k++ {
			if k == dies {
				_, err := s.Add(ctx, key("here", 1), 1)
				require.NoError(t, err)
				continue
			}
			seats[k] = make(chan int, 1)
			go func() {
				_, mine, err := Answer(ctx, s, 1, Guest{PID: k}, long)
				require.NoError(t, err)
				seats[k] <- mine
			}()
			require.Eventually(t, func() bool { n, _ := s.Add(ctx, key("here", 1), 0); return n == int64(k) }, long, time.Millisecond)
		}
		for k := range seats {
			_, err := s.Get(ctx, key("here/1", k))
			require.NoError(t, err)
		}
		g, guests, err := Call(ctx, s, 0, 20*time.Millisecond)
		require.NoError(t, err)
		require.Equal(t, int64(1), g)
		require.Len(t, guests, 3)
		ranks := make([]int, 3)
		for i, one := range guests {
			require.Equal(t, i+1 == dies, one.Silent)
			if ranks[i] = 10 + i; one.Silent {
				ranks[i] = -1
			} else {
				require.Equal(t, i+1, one.PID)
			}
		}
		require.NoError(t, Seat(ctx, s, g, &Seats{Ranks: ranks, Size: 20}))
		for k, mine := range seats {
			require.Equal(t, 9+k, <-mine)
		}
	}
}

// A lead is lost before it has called, or before it has seated: the guest is in the next generation.
func TestLostLead(t *testing.T) {
	for _, called := range []bool{false, true} {
		t.Run(fmt.Sprint("called ", called), func(t *testing.T) {
			ctx, s := t.Context(), newBoard()
			taken, last := make(chan int64, 1), int64(3)
			if called {
				last = 2
			}
			go func() {
				for after := int64(0); ; {
					g, err := Next(ctx, s, after, true)
					after = g
					if err != nil {
						return
					}
					limit := 20 * time.Millisecond
					if g == last { // which seats it
						limit = long
					}
					seats, mine, err := Answer(ctx, s, g, Guest{}, limit)
					if err != nil || seats != nil && mine == 0 {
						taken <- g
						return
					}
				}
			}()
			require.Eventually(t, func() bool { w, _ := Waiting(ctx, s); return w == 1 }, long, time.Millisecond)
			_, err := s.Add(ctx, prefix+"generation", 1)
			require.NoError(t, err)
			if called {
				require.NoError(t, s.Set(ctx, key("call", 1), nil))
				require.Eventually(t, func() bool { w, _ := Waiting(ctx, s); return w == 1 }, long, time.Millisecond)
			} else { // one more, so that the guest sees that it has missed one
				_, _, err = Call(ctx, s, 0, time.Millisecond)
				require.NoError(t, err)
				require.Eventually(t, func() bool { w, _ := Waiting(ctx, s); return w == 1 }, long, time.Millisecond)
			}
			g, guests, err := Call(ctx, s, 0, long)
			require.NoError(t, err)
			require.Equal(t, last, g)
			require.Len(t, guests, 1)
			require.NoError(t, Seat(ctx, s, g, &Seats{Ranks: []int{0}, Size: 1}))
			select {
			case in := <-taken:
				require.Equal(t, g, in)
			case <-time.After(long):
				t.Fatal("the guest is not seated")
			}
		})
	}
}

var errLost = errors.New("this rank is lost")

// told is a board that tells when a number has been changed, and loses its rank before it leaves word.
type told struct {
	*board
	lost  bool
	added chan struct{}
}

func (b told) Add(ctx context.Context, key string, n int64) (int64, error) {
	defer close(b.added)
	return b.board.Add(ctx, key, n)
}

func (b told) Set(ctx context.Context, key string, v []byte) error {
	if b.lost {
		return errLost
	}
	return b.board.Set(ctx, key, v)
}

// In every order in which a lead and three others come, whichever of them are lost between their two steps, all others come to the
// same: it counts if the lead was first. Some come to no decision only where all are lost that know it by the sum.
func TestDecideInAllOrders(t *testing.T) {
	const ranks = 4
	cases, undecided := 0, 0
	try := func(order []int, lost int) {
		cases++
		first := order[0] == 0
		s, results := newBoard(), make([]chan error, ranks)
		know := slices.Index(order, 0) + 1 // those before the lead, and it
		if first {
			know = 2 // it, and the next
		}
		word := slices.ContainsFunc(order[:know], func(r int) bool { return lost>>r&1 == 0 })
		limit := long
		if !word {
			limit = time.Millisecond
		}
		for _, r := range order {
			one := told{s, lost>>r&1 != 0, make(chan struct{})}
			results[r] = make(chan error, 1)
			go func() {
				counts, err := Decide(context.Background(), one, 1, r == 0, limit)
				if err == nil && counts != first {
					err = fmt.Errorf("rank %d says %v", r, counts)
				}
				results[r] <- err
			}()
			<-one.added
		}
		for r := range ranks {
			switch err := <-results[r]; {
			case err == nil: // also where it could leave no word
			case errors.Is(err, context.DeadlineExceeded) && !word:
				undecided++
			default:
				require.NoError(t, err, "order %v, lost %b", order, lost)
			}
		}
	}
	var run func(order []int)
	run = func(order []int) {
		if len(order) == ranks {
			for lost := range 1 << ranks {
				try(order, lost)
			}
			return
		}
		for r := range ranks {
			if !slices.Contains(order, r) {
				run(append(order[:len(order):len(order)], r))
			}
		}
	}
	run(nil)
	require.Equal(t, 24*16, cases)
	require.Positive(t, undecided)
}

// What the store says is not believed where it cannot be.
func FuzzParseSeats(f *testing.F) {
	text, _ := json.Marshal(&Seats{Ranks: []int{0, -1}, Size: 1})
	f.Add(text)
	f.Add([]byte(`{"ranks":[7],"size":3}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseSeats(b)
		if err != nil {
			return
		}
		for _, r := range append(s.Ranks, s.Fresh...) {
			require.True(t, r >= -1 && r < s.Size)
		}
	})
}

// Of those that begin at once one is first, and it alone may begin again.
func TestBegin(t *testing.T) {
	s := newBoard()
	firsts := make(chan int, 8)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			first, err := Begin(t.Context(), s, []byte{byte(i)})
			if err == nil && first {
				firsts <- i
			}
		})
	}
	wg.Wait()
	require.Len(t, firsts, 1)
	founder := <-firsts
	for i := range 8 {
		first, err := Begin(t.Context(), s, []byte{byte(i)})
		require.NoError(t, err)
		require.Equal(t, i == founder, first)
	}
}

// early is a Store whose connections look at the clock themselves: a deadline ends a Get a moment before the context
// hears of it.
type early struct{ *board }

func (e early) Get(ctx context.Context, key string) ([]byte, error) {
	at, ok := ctx.Deadline()
	if !ok {
		return e.board.Get(ctx, key)
	}
	short, cancel := context.WithDeadline(ctx, at.Add(-2*time.Millisecond))
	defer cancel()
	if v, err := e.board.Get(short, key); err == nil {
		return v, nil
	}
	for time.Now().Before(at) { // on the one processor, so that no timer goes off meanwhile
	}
	return nil, errors.New("the context ended before the hall was reached")
}

// A guest that has been told of no call for a while waits on, whoever was first to look at the clock.
func TestNextOutlivesADial(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ctx, s := t.Context(), early{newBoard()}
	call := time.AfterFunc(awhile*3/2, func() { _, _, _ = Call(ctx, s, 0, time.Second) })
	defer call.Stop()
	g, err := Next(ctx, s, 0, true)
	require.NoError(t, err)
	require.EqualValues(t, 1, g)
}

// Whatever is waited for: where the caller's own context ends, that is the error, also where the store's connection has
// seen its deadline first. It is not taken for a limit of the wait, after which others are taken for lost.
func TestContextEndsAWait(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for what, waits := range map[string]func(ctx context.Context, s Store) error{
		"Begin":  func(ctx context.Context, s Store) error { _, err := Begin(ctx, s, nil); return err },
		"Next":   func(ctx context.Context, s Store) error { _, err := Next(ctx, s, 0, true); return err },
		"Answer": func(ctx context.Context, s Store) error { _, _, err := Answer(ctx, s, 1, Guest{}, long); return err },
		"Call":   func(ctx context.Context, s Store) error { _, _, err := Call(ctx, s, 1, long); return err },
		"Decide": func(ctx context.Context, s Store) error { _, err := Decide(ctx, s, 1, false, long); return err },
	} {
		t.Run(what, func(t *testing.T) {
			s := early{newBoard()}
			for key, n := range map[string]int64{prefix + "begun": 1, key("decide", 1): Against + 1} {
				_, err := s.Add(t.Context(), key, n)
				require.NoError(t, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			require.EqualError(t, waits(ctx, s), "the context ended before the hall was reached")
		})
	}
}
