//go:build fault

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/test/internal/leftover"
)

// bound is how long a whole case may take.
func bound() time.Duration { return 30 * time.Second * slower() }

// slower is how many times as long many processes may take on few processors.
func slower() time.Duration { return time.Duration(1 + *ranksFlag/10) }

// says is what one rank tells the oracle, a line for each thing:
//
//	end R code C peer P missing [..]: ...    the stream has ended with that error; code 0: with none
//	wrong R ...                              a result was wrong
//	left R [..]                              the ranks of the last Comm, after Shrink
//	broken R ...                             something else that must not be
//	closing R                                all have come to the end, and it has only to close
//	closed R                                 the rank has come to its end
type says struct {
	io.Writer
	world int
}

func (s says) printf(what, format string, args ...any) {
	fmt.Fprintf(s, "%s %d %s\n", what, s.world, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; "))
}

// options are those of the scenario's Comm.
func (s *scenario) options() *ccl.Options {
	o := &ccl.Options{Timeout: s.timeout, PeerTimeout: s.peer, RankOrder: s.rankOrder, Log: slog.New(slog.DiscardHandler)}
	if s.strict {
		o.Check = ccl.CheckStrict
	}
	return o
}

// live is the life of one rank.
func (s *scenario) live(b ccl.Bootstrap, out io.Writer) {
	ctx, stop := context.WithTimeout(context.Background(), bound())
	defer stop()
	say := says{out, b.Rank()}
	world, err := ccl.NewComm(ctx, b, s.options())
	if err != nil {
		say.end(err)
		say.printf("closed", "without a Comm")
		return
	}
	defer say.printf("closed", "")
	defer world.Close()
	c := world
	if s.wrong == killInSplit {
		sub, err := c.Split(ctx, 0, 0)
		if err != nil {
			say.end(err)
			s.goOn(ctx, c, say)
			return
		}
		defer sub.Close()
	}
	if s.wrong == killInShrink && b.Rank() == s.victim { // which needs an occasion
		time.AfterFunc(2*time.Millisecond, func() { c.Abort(errors.New("on purpose")) })
	}
	err = s.stream(ctx, c, say)
	say.end(err)
	if w := (errWrong{}); errors.As(err, &w) {
		return
	}
	if err == nil && s.wrong != killInShrink {
		if s.wrong == killInClose {
			return
		}
		// Nobody closes before all have come: else who is late would hear of it.
		if err := ccl.Barrier(ctx, c); err != nil {
			say.end(err)
			s.goOn(ctx, c, say)
			return
		}
		say.printf("closing", "")
		return
	}
	s.goOn(ctx, c, say)
}

// end says how the stream ended.
func (s says) end(err error) {
	var e *ccl.Error
	var w errWrong
	switch {
	case err == nil:
		s.printf("end", "code 0 peer -1 time 0")
	case errors.As(err, &w):
		s.printf("wrong", "%v", err)
	case errors.As(err, &e):
		s.printf("end", "code %d peer %d time %d: %v", e.Code, e.Peer, time.Now().UnixNano(), err)
	default:
		s.printf("broken", "%v", err)
	}
}

// stream makes the calls of this rank, until one fails.
func (s *scenario) stream(ctx context.Context, c *ccl.Comm, say says) error {
	victim := say.world == s.victim
	for i, k := range s.callsOf(say.world) {
		inner := ctx
		if victim && i == s.at {
			var stop context.CancelFunc
			inner, stop = s.misbehave(ctx, c)
			defer stop()
			if s.wrong == leave {
				return nil
			}
		}
		err := runners[k.typ](inner, c, k, i)
		var w errWrong
		if errors.As(err, &w) && victim && i >= s.at {
			err = nil // it is the victim's own calls that are wrong
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// misbehave begins what the victim does in a call, where that is no point of package inject.
func (s *scenario) misbehave(ctx context.Context, c *ccl.Comm) (context.Context, context.CancelFunc) {
	switch s.wrong {
	case cancel:
		inner, stop := context.WithCancel(ctx)
		time.AfterFunc(s.delay, stop)
		return inner, stop
	case abort:
		time.AfterFunc(s.delay, func() { c.Abort(errors.New("on purpose")) })
	case pauseShort:
		time.Sleep(20 * s.delay)
	case pauseLong:
		time.Sleep(s.timeout + s.timeout/2) // less than twice: Shrink waits as long as a call
	case gcStorm:
		if s.point == "" {
			for range 20 {
				runtime.GC()
			}
		}
	case leave:
		c.Close()
	}
	return ctx, func() {}
}

// goOn makes a Comm of those that are left, as often as it takes, and uses it.
func (s *scenario) goOn(ctx context.Context, failed *ccl.Comm, say says) {
	if s.wrong == leave && say.world == s.victim {
		return
	}
	for range s.n + 1 {
		c, err := failed.Shrink(ctx)
		if err != nil {
			say.printf("broken", "%v", err)
			return
		}
		defer c.Close()
		left := make([]int, c.Size())
		if err = ccl.AllGather(ctx, c, left, []int{say.world}); err == nil {
			for i := range 3 {
				if err = runners[i](ctx, c, call{kind: ccl.KindAllReduce, count: 1000 * i, op: ccl.Sum}, i); err != nil {
					break
				}
			}
		}
		if err == nil {
			if err = ccl.Barrier(ctx, c); err == nil {
				say.printf("left", "%v", left)
				return
			}
		}
		if !errors.Is(err, ccl.ErrRankLost) && !errors.Is(err, ccl.ErrAborted) && !errors.Is(err, ccl.ErrClosed) {
			say.printf("broken", "after Shrink: %v", err)
			return
		}
		failed = c
	}
	say.printf("broken", "Shrink and Shrink, and no end")
}

// TestChaosRank is not a test of its own: it is what the processes of a case run.
func TestChaosRank(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("CHAOS_SEED"), 10, 64)
	if err != nil {
		return
	}
	s := newScenario(seed)
	asRanks(t, s.processes, s.n, s.hosts, func(b *boot.Boot) { s.live(b, os.Stdout) })
}

// asRanks runs the life of the rank that this process is, or of all n ranks as goroutines, as on so many hosts. It tells what they
// leave behind.
func asRanks(t *testing.T, processes bool, n, hosts int, live func(b *boot.Boot)) {
	if processes {
		b, err := boot.Env(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before := leftover.Now()
		live(b)
		b.Close()
		tellLeaks(b.Rank(), before)
		return
	}
	before := leftover.Now()
	var names []string
	for r := range n * min(hosts, 1) {
		names = append(names, fmt.Sprintf("host-%d", r*hosts/n))
	}
	var all sync.WaitGroup
	for _, b := range boot.Local(n, names...) {
		all.Go(func() {
			defer b.Close()
			live(b)
		})
	}
	all.Wait()
	tellLeaks(0, before)
}

func tellLeaks(rank int, before leftover.Count) {
	if text := before.Beyond(); text != "" {
		says{os.Stdout, rank}.printf("broken", "%s", text)
	}
}
