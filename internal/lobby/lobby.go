// Package lobby is how a running job and processes that start late find each other in a store.
//
// The job takes in others in meetings, which are numbered: generations. A guest waits for the next
// generation, and says that it does. The lead, rank 0 of the job's Comm, calls it. Guests answer,
// and the lead seats them: it tells each its rank, and where all meet. So nothing that a guest needs
// lies in a rank that may be lost, and a guest whose lead is lost goes on to the next generation.
//
//	came/g      number: so many guests wait for generation g; dead ones count once
//	generation  number: the last generation that was called
//	call/g      set by the lead: generation g begins
//	here/g      number: so many have answered
//	here/g/k    set by the k-th of these: who it is
//	seats/g     set by the lead: who is taken in, and where they meet
//	decide/g    number: see Decide
//	decided/g   set by whoever knows what the number says
//	begun       number: the job has started, so a process that starts now is late; whose is 1 has founded it
//	founder     set by rank 0 of the job that was founded: its process
//	over        set by the launcher: the job has ended
//	gone/ID     set by the launcher: the guest's process has ended
//	gone/LINE   set by the store itself, or the guest: it is not coming, though it has answered
//	taken/ID    set by the guest: it is a rank now
package lobby

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/plain"
)

// Store is what is asked of a boot.Store.
type Store interface {
	Set(ctx context.Context, key string, value []byte) error
	Get(ctx context.Context, key string) ([]byte, error)
	Add(ctx context.Context, key string, n int64) (int64, error)
}

// Watcher is a Store that notices when a process has ended, or its connection to the store has: it sets key then,
// until end is called. Where that says lost, key is set at once.
type Watcher interface {
	SetWhenLost(ctx context.Context, key string) (end func(lost bool), err error)
}

const prefix = "goccl/"

func key(what string, id any) string { return fmt.Sprintf("%s%s/%v", prefix, what, id) }

const founderKey = prefix + "founder"

// look returns the value of key, for which it waits at most that long. late says that there was none by then, while
// ctx lasts: err is the store's word for that. Only here does a limit end a Get, so that ctx's end, which a store's
// connection may see a moment before ctx does, is never taken for the limit's.
func look(ctx context.Context, s Store, key string, limit time.Duration) (text []byte, late bool, err error) {
	short, cancel := lived.Within(ctx, limit)
	defer cancel()
	text, err = s.Get(short, key)
	return text, err != nil && short.Err() != nil && lived.Ended(ctx) == nil, err
}

// Over is the key that is set once the job is over.
const Over = prefix + "over"

// Gone is set once the process of the guest with that ID, or that line, has ended.
func Gone(id string) string { return key("gone", id) }

// Taken is set once the guest with that ID is a rank.
func Taken(id string) string { return key("taken", id) }

// Begin says that the job has started, and reports whether it is the first to say so: of jobs that
// start at once the sum of one Add decides. mine tells the process that says so from all others: it
// may begin its job again.
func Begin(ctx context.Context, s Store, mine []byte) (first bool, err error) {
	n, err := s.Add(ctx, prefix+"begun", 1)
	if err != nil {
		return false, err
	}
	if n == 1 {
		return true, s.Set(ctx, founderKey, mine)
	}
	founder, late, err := look(ctx, s, founderKey, awhile)
	if late { // the founder was lost before it set its word
		return false, nil
	}
	return err == nil && bytes.Equal(founder, mine), err
}

// Founder waits until a job has started, and returns what its rank 0 gave to Begin.
func Founder(ctx context.Context, s Store) ([]byte, error) { return s.Get(ctx, founderKey) }

// Begun reports whether the job has started.
func Begun(ctx context.Context, s Store) (bool, error) {
	n, err := s.Add(ctx, prefix+"begun", 0)
	return n > 0, err
}

// Guest is what a guest says of itself.
type Guest struct {
	ID    string `json:"id,omitempty"` // of a process that a launcher has started again
	Host  string `json:"host"`
	At    []byte `json:"at"` // tells hosts apart
	PID   int    `json:"pid"`
	Spare int    `json:"spare,omitempty"` // of a spare: 1 more than its rank in its job

	Addrs []netip.Addr `json:"addrs,omitempty"` // of its host, the likeliest way there first

	Line string `json:"line,omitempty"` // of a newcomer in a Watcher: tells this answer of it from others

	Silent bool `json:"-"` // it has announced itself without saying which process it is: it may have ended in between
}

// Seats is who is taken in, and where they meet.
type Seats struct {
	Ranks  []int         `json:"ranks"` // by answer: the rank in the new job; -1: not this time
	Addr   string        `json:"addr"`  // of rank 0
	Secret []byte        `json:"secret"`
	Size   int           `json:"size"`   // spares included
	Spares int           `json:"spares"` // of these, the last ones
	Fresh  []int         `json:"fresh"`  // ranks that work, and have not the state
	Limit  time.Duration `json:"limit"`  // how long the meeting may take

	Unmet []string `json:"unmet,omitempty"` // by answer: why it cannot come at all, "" where that is not so
	Links bool     `json:"links,omitempty"` // the job knows the links between its hosts: those of new ones are measured
}

// Unmet is why a guest cannot come, by what the lead says.
type Unmet struct{ Why string }

func (e *Unmet) Error() string { return e.Why }

// awhile is how long a guest waits for a call before it looks whether it has missed one: the lead
// that was to make it was lost.
const awhile = time.Second

// Current returns the last generation that was called.
func Current(ctx context.Context, s Store) (int64, error) { return s.Add(ctx, prefix+"generation", 0) }

// Next waits until a lead calls the first generation after that one, and returns which it is. A
// newcomer announces itself before, so that the lead knows of it; of spares of its job it knows.
func Next(ctx context.Context, s Store, after int64, newcomer bool) (int64, error) {
	for g := after + 1; ; g++ {
		if newcomer {
			if _, err := s.Add(ctx, key("came", g), 1); err != nil {
				return 0, err
			}
		}
		for last := int64(0); last <= g; {
			_, late, err := look(ctx, s, key("call", g), awhile)
			if err == nil {
				return g, nil
			}
			if !late {
				return 0, err
			}
			if last, err = Current(ctx, s); err != nil {
				return 0, err
			}
		}
	}
}

// Answer says that a guest comes to generation g, and waits for its seat, at most for that long.
// mine is its rank there, -1 where it is not taken in this time. Where it never can be, the error
// is an Unmet.
func Answer(ctx context.Context, s Store, g int64, me Guest, limit time.Duration) (seats *Seats, mine int, err error) {
	k, err := s.Add(ctx, key("here", g), 1)
	if err != nil {
		return nil, -1, err
	}
	text, err := json.Marshal(me)
	if err != nil {
		return nil, -1, err
	}
	if err := s.Set(ctx, key(fmt.Sprintf("here/%d", g), k), text); err != nil {
		return nil, -1, err
	}
	text, late, err := look(ctx, s, key("seats", g), limit)
	switch {
	case late: // the lead is lost
		return nil, -1, nil
	case err != nil:
		return nil, -1, err
	}
	if seats, err = parseSeats(text); err != nil {
		return nil, -1, err
	}
	switch {
	case k > int64(len(seats.Ranks)):
		return seats, -1, nil
	case k <= int64(len(seats.Unmet)) && seats.Unmet[k-1] != "":
		return nil, -1, &Unmet{seats.Unmet[k-1]}
	}
	return seats, seats.Ranks[k-1], nil
}

// parseSeats reads what the lead has set.
func parseSeats(text []byte) (*Seats, error) {
	s := new(Seats)
	if err := plain.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("the seats in the store cannot be read: %w", err)
	}
	none := func(r int) bool { return r < -1 || r >= s.Size }
	if s.Spares < 0 || s.Spares >= max(s.Size, 1) || s.Limit < 0 ||
		slices.ContainsFunc(append(s.Ranks, s.Fresh...), none) {
		return nil, errors.New("the seats in the store are not those of a job")
	}
	return s, nil
}

// Waiting is how many guests have announced themselves for the next generation, as far as the store knows.
func Waiting(ctx context.Context, s Store) (int, error) {
	g, err := Current(ctx, s)
	if err != nil {
		return 0, err
	}
	n, err := s.Add(ctx, key("came", g+1), 0)
	return int(max(n, 0)), err
}

// Call begins the next generation, and returns the guests that answer, until all are there that
// have announced themselves and so many spares, or the time is over. A guest that has come and does
// not say which process it is keeps its place in the list, and is Silent.
func Call(ctx context.Context, s Store, spares int, limit time.Duration) (g int64, guests []Guest, err error) {
	if g, err = s.Add(ctx, prefix+"generation", 1); err != nil {
		return 0, nil, err
	}
	came, err := s.Add(ctx, key("came", g), 0)
	if err == nil {
		err = s.Set(ctx, key("call", g), []byte{1})
	}
	if err != nil {
		return g, nil, err
	}
	short, cancel := lived.Within(ctx, limit)
	defer cancel()
	many := spares + int(max(came, 0))
	here := func() (int, error) {
		n, err := s.Add(ctx, key("here", g), 0)
		return int(n), err
	}
	for k := 1; ; k++ {
		if k > many { // has another come meanwhile?
			if many, err = here(); err != nil {
				return g, nil, err
			}
			if k > many {
				return g, guests, nil
			}
		}
		one, err := guestAt(ctx, short, s, g, k)
		if err == nil && one.Silent {
			var n int
			if n, err = here(); err == nil && k > n { // it has not come
				return g, guests, nil
			}
		}
		if err != nil {
			return g, nil, err
		}
		guests = append(guests, one)
	}
}

// lookFor is the least time for which the lead waits for a guest's answer, even if the time for answers is over.
const lookFor = 200 * time.Millisecond

// guestAt is the k-th that has come to generation g, which has until short ends to say who it is.
func guestAt(ctx, short context.Context, s Store, g int64, k int) (one Guest, err error) {
	limit, _ := lived.Left(short)
	text, late, err := look(ctx, s, key(fmt.Sprintf("here/%d", g), k), max(limit, lookFor))
	switch {
	case late:
		return Guest{Silent: true}, nil
	case err != nil:
		return one, err
	}
	if err := plain.Unmarshal(text, &one); err != nil {
		return one, fmt.Errorf("what guest %d says in the store cannot be read: %w", k, err)
	}
	return one, nil
}

// Seat tells the guests of generation g where they meet.
func Seat(ctx context.Context, s Store, g int64, seats *Seats) error {
	text, err := json.Marshal(seats)
	if err != nil {
		return err
	}
	return s.Set(ctx, key("seats", g), text)
}

// Against is what one that is against a meeting adds to its number. The lead adds 1, once.
const Against = 1 << 32

// Judge says what the sum after adding Against proves: that the meeting counts, that it does not,
// or neither (known is false).
func Judge(number int64) (counts, known bool) {
	switch {
	case number%Against == 0: // the lead has not been there, and comes too late
		return false, true
	case number == Against+1: // it is the first, and the lead was there
		return true, true
	}
	return false, false
}

// Decide settles whether the meeting of generation g counts, once for all, whoever is lost. It
// counts if the lead, which has heard from everybody that they are there, says so before anybody
// says otherwise. Whoever does not hear what the lead has done asks here, and so says otherwise.
// The order in which they add to one number decides. Three kinds know it by the sum: the lead,
// whoever comes before it, and whoever comes next after it; they leave word for the others. Only
// where all of these are lost between the two steps do others find no word, at most for limit,
// which is an error.
func Decide(ctx context.Context, s Store, g int64, lead bool, limit time.Duration) (counts bool, err error) {
	word := key("decided", g)
	known := func(counts bool) (bool, error) {
		text := []byte{'n'}
		if counts {
			text[0] = 'y'
		}
		s.Set(ctx, word, text) // it is known here, whether the others find it or not
		return counts, nil
	}
	if lead {
		if n, err := s.Add(ctx, key("decide", g), 1); err == nil {
			return known(n == 1)
		} // which may have been carried out all the same
	}
	n, err := s.Add(ctx, key("decide", g), Against)
	if err != nil {
		return false, err
	}
	if counts, is := Judge(n); is {
		return known(counts)
	}
	text, _, err := look(ctx, s, word, limit)
	if err == nil && string(text) != "y" && string(text) != "n" {
		err = fmt.Errorf("the store's word on generation %d cannot be read", g)
	}
	return err == nil && text[0] == 'y', err
}

// Refused waits until it is known whether the meeting of generation g counts, and reports that it does not.
func Refused(ctx context.Context, s Store, g int64) bool {
	text, err := s.Get(ctx, key("decided", g))
	return err == nil && string(text) == "n"
}

// Name is how people call a guest.
func (g Guest) Name() string {
	text := "a process on host " + g.Host + ", pid " + strconv.Itoa(g.PID)
	if g.ID != "" {
		text = "rank " + g.ID + ", which was started again (host " + g.Host + ", pid " + strconv.Itoa(g.PID) + ")"
	}
	if g.Spare > 0 {
		text = "a spare, world rank " + strconv.Itoa(g.Spare-1)
	}
	return text
}
