package campaign

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/test/internal/leftover"
)

// What the processes of a job know by their environment.
const (
	jobVar     = "CAMPAIGN_JOB"     // its name
	processVar = "CAMPAIGN_PROCESS" // the number of the process
	dirVar     = "CAMPAIGN_DIR"     // a directory of the job
)

// secret is that of all jobs: they meet on this machine, and nobody else comes.
const secret = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

var secretBytes, _ = hex.DecodeString(secret)

// A rank is one seat of a job that has come in.
type rank struct {
	p      *plan
	seat   int
	out    io.Writer
	kill   func(after time.Duration) // ends this process
	world  *ccl.Comm
	seats  []int // of the ranks of world
	spares int   // that wait
	arena  *arena
}

// A line is what a rank says: "begun", "end" with an End, "wrong" with a Text, "done".
type line struct {
	Says string
	Seat int
	Text string `json:",omitempty"`
	End  *end   `json:",omitempty"`
}

func (r *rank) says(what string, x any) {
	l := line{Says: what, Seat: r.seat}
	switch x := x.(type) {
	case end:
		l.End = &x
	case error:
		l.Text = x.Error()
	}
	text, _ := json.Marshal(l)
	r.out.Write(append(text, '\n'))
}

// seated is the bootstrap of a seat, which says the host that the plan has for it.
type seated struct {
	*boot.Boot
	host string
}

func (s seated) HostID() string { return s.host }

// TestCampaignProcess is not a test of its own: it is what the processes of a job run.
func TestCampaignProcess(t *testing.T) {
	name := os.Getenv(jobVar)
	if name == "" {
		return
	}
	p, err := newPlan(name)
	if err != nil {
		t.Fatal(err)
	}
	before := leftover.Now()
	kill := sync.OnceFunc(func() {
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
	})
	var all sync.WaitGroup
	for seat, process := range p.process {
		if fmt.Sprint(process) != os.Getenv(processVar) {
			continue
		}
		r := &rank{p: p, seat: seat, out: os.Stdout, kill: func(after time.Duration) { time.AfterFunc(after, kill) }}
		all.Go(func() {
			if err := r.live(); err != nil {
				r.says("wrong", err)
			} else {
				r.says("done", nil)
			}
		})
	}
	all.Wait()
	if text := before.Beyond(); text != "" {
		(&rank{out: os.Stdout, seat: -1}).says("wrong", errors.New("left behind: "+text))
	}
}

// live is the life of a seat.
func (r *rank) live() error {
	ctx, cancel := context.WithTimeout(context.Background(), jobLimit)
	defer cancel()
	o := &ccl.Options{Timeout: callLimit, PeerTimeout: 20 * time.Second, RankOrder: r.p.rankOrder, Spares: r.p.spares, Log: slog.New(slog.DiscardHandler)}
	if r.p.strict {
		o.Check = ccl.CheckStrict
	}
	if r.p.late > 0 {
		hall, err := boot.DialHall(os.Getenv("GOCCL_HALL"), secretBytes)
		if err != nil {
			return err
		}
		o.Store = hall
	}
	var err error
	if first := r.p.ranks + r.p.spares; r.seat < first {
		var b *boot.Boot
		if b, err = boot.File(ctx, os.Getenv(dirVar), "campaign", r.seat, first); err != nil {
			return err
		}
		defer b.Close()
		r.world, err = ccl.NewComm(ctx, seated{b, fmt.Sprint("host-", r.p.host[r.seat])}, o)
	} else {
		r.world, err = ccl.Join(ctx, o)
	}
	if errors.Is(err, ccl.ErrUnused) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { r.world.Close() }()
	from := 0
	if r.seat < r.p.ranks {
		for seat := range r.p.ranks {
			r.seats = append(r.seats, seat)
		}
		r.spares = r.p.spares
		r.says("begun", nil)
		memory, err := ccl.MakeSlice[byte](ctx, r.world, arenaBytes)
		if err != nil {
			return err
		}
		defer ccl.FreeSlice(memory)
		r.arena = &arena{memory: memory}
	} else if from, err = r.meet(ctx, 0); err != nil {
		return err
	}
	for i := from; i < len(r.p.steps); i++ {
		if err := r.step(ctx, i); err != nil {
			r.world.Abort(err)
			return err
		}
	}
	if err := ccl.Barrier(ctx, r.world); err != nil {
		return fmt.Errorf("the last Barrier: %w", err)
	}
	if err := r.world.Close(); err != nil {
		return fmt.Errorf("the last Close: %w", err)
	}
	return nil
}

// step makes one step of the plan.
func (r *rank) step(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	s := r.p.steps[i]
	scene := r.newScene(ctx, r.world, r.seats, s.number, 0, 0)
	if scene.arena = r.arena; r.arena != nil {
		r.arena.used = 0
	}
	switch s.kind {
	case killing:
		return r.lose(scene, i)
	case growing:
		return r.grow(scene, i)
	}
	return scene.make(s.kind)
}

// lose has a process killed while all make calls, and goes on without its ranks, or with spares in their places.
func (r *rank) lose(s *scene, i int) error {
	lost := slices.DeleteFunc(slices.Clone(r.seats), func(seat int) bool { return r.p.process[seat] != r.p.steps[i].victim })
	if len(lost) == 0 || len(lost) == len(r.seats) {
		return s.blocking()
	}
	delay := time.Duration(s.rnd.IntN(5000)) * time.Microsecond
	err := s.barrier() // all are there when it happens, or in the Barrier
	mine := slices.Contains(lost, r.seat)
	if mine {
		r.kill(delay)
	}
	began := time.Now()
	if err == nil {
		err = s.untilError(s.ctx)
	}
	if mine {
		select {} // it is over in a moment
	}
	if errors.As(err, new(wrong)) {
		return err
	}
	if err := s.say(err, killed, lost, len(r.seats)-len(lost), 0, time.Since(began)); err != nil {
		return err
	}
	replaces := r.spares >= len(lost)
	next, what := (*ccl.Comm)(nil), "Shrink"
	if replaces {
		what = "Replace"
		next, err = r.world.Replace(s.ctx)
	} else {
		next, err = r.world.Shrink(s.ctx)
	}
	if err != nil {
		return fmt.Errorf("step %d: %s after seats %v were killed: %w", s.step, what, lost, err)
	}
	before := r.seats
	if err := r.become(s, next, i); err != nil {
		return err
	}
	want := slices.DeleteFunc(slices.Clone(before), func(seat int) bool { return !replaces && slices.Contains(lost, seat) })
	for k, seat := range want {
		if len(want) != len(r.seats) || seat != r.seats[k] && !slices.Contains(lost, seat) || slices.Contains(lost, r.seats[k]) {
			return s.wrongf("%s after seats %v of %v were killed gave %v", what, lost, before, r.seats)
		}
	}
	return nil
}

// grow takes in the processes that come late.
func (r *rank) grow(s *scene, i int) error {
	size, before := r.world.Size()+r.p.late, r.seats
	for {
		next, err := ccl.Grow(s.ctx, r.world, size)
		if err != nil {
			return fmt.Errorf("step %d: Grow to %d: %w", s.step, size, err)
		}
		if next == r.world {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err := r.become(s, next, i); err != nil {
			return err
		}
		if len(r.seats) != size || !slices.Equal(r.seats[:len(before)], before) {
			return s.wrongf("Grow of %v to %d gave %v", before, size, r.seats)
		}
		return nil
	}
}

// become goes on with another Comm, after step i.
func (r *rank) become(s *scene, next *ccl.Comm, i int) error {
	if err := r.world.Close(); err != nil {
		return s.wrongf("Close of the Comm before: %v", err)
	}
	r.world = next
	_, err := r.meet(s.ctx, i+1)
	return err
}

// meet tells newcomers where the job is, and all of them which process has which rank.
func (r *rank) meet(ctx context.Context, at int) (next int, err error) {
	root, fresh := 0, r.world.Fresh()
	for slices.Contains(fresh, root) {
		root++
	}
	state, err := ccl.BroadcastValue(ctx, r.world, [2]int{at, r.world.Waiting()}, root)
	if err != nil {
		return 0, fmt.Errorf("telling newcomers: %w", err)
	}
	r.world.Restored()
	r.spares = state[1]
	seats := make([]int, r.world.Size())
	if err := ccl.AllGather(ctx, r.world, seats, []int{r.seat}); err != nil {
		return 0, fmt.Errorf("telling seats: %w", err)
	}
	r.seats = seats
	return state[0], nil
}
