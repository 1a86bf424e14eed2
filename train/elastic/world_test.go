package elastic_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
	"github.com/goccl/goccl/train/elastic"
)

var (
	seeds = flag.Uint64("seeds", 20, "how many jobs TestWorld runs")
	first = flag.Uint64("first", 1, "the first of them")
)

var worldSecret = []byte("the secret of a world")

// wholeMost is how long it may take until all that live have made a round together.
const wholeMost = 2 * time.Minute

// process is one of a world, on a host of its own.
type process struct {
	host       *simnet.Host
	last, size int
	begun      bool
	ended      chan struct{}
	err        error
}

// worldJob is what the processes of a world have in common.
type worldJob struct {
	mu   sync.Mutex
	all  []*process
	stop bool
	fail []string
	env  []string
}

func (v *worldJob) add(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fail = append(v.fail, fmt.Sprintf(format, args...))
}

// run is the program of process i. Its state after n rounds is the sum of 1 to n.
func (v *worldJob) run(ctx context.Context, i int, hall string, log *slog.Logger, net *simnet.Net) {
	s := v.all[i]
	defer close(s.ended)
	store, err := boot.DialHall(hall, worldSecret)
	if err != nil {
		s.err = err
		return
	}
	s.host.Launch(append(v.env, fmt.Sprint("GOCCL_HOSTID=host", i), "GOCCL_SECRET="+string(worldSecret))...)
	state, step, mean := make([]float64, 20000), make([]float64, 20000), make([]float64, 20000)
	round, stop := []int64{0}, []int64{0}
	s.err = elastic.Run(s.host.Context(ctx), &elastic.Job{
		State:   []ccl.Buf{ccl.BufOf(state), ccl.BufOf(round)},
		Most:    len(v.all),
		Options: &ccl.Options{PeerTimeout: time.Second, Log: log, Store: store},
		Local: func(_ context.Context, n int) error {
			s.host.Live()
			for k := range step {
				step[k] = float64(n + 1)
			}
			time.Sleep(20 * time.Millisecond)
			return nil
		},
		Share: func(ctx context.Context, r *elastic.Round) error {
			s.host.Live()
			if err := elastic.Mean(ctx, r, mean, step); err != nil {
				return err
			}
			v.mu.Lock()
			stop[0] = 0
			if v.stop {
				stop[0] = 1
			}
			v.mu.Unlock()
			if err := ccl.AllReduce(ctx, r.Comm, stop, stop, ccl.Max); err != nil {
				return err
			}
			for k, x := range mean {
				state[k] += x
			}
			round[0]++
			s.host.Live()
			n := int(round[0])
			if want := float64(n*(n+1)) / 2; state[0] != want || state[len(state)-1] != want || n != r.N+1 {
				v.add("process %d: round %d, %d has %v, %v, not %v", i, n, r.N+1, state[0], state[len(state)-1], want)
			}
			net.Note("process %d: round %d of %d", i, n, r.Comm.Size())
			v.mu.Lock()
			s.last, s.size = n, r.Comm.Size()
			v.mu.Unlock()
			if stop[0] == 1 {
				return errDone
			}
			return nil
		},
	})
	net.Note("process %d ends: %v", i, s.err)
}

// oneWorld is a job of a seed. Unless behind is nil there is a relay, and behind says who does not reach whom.
func oneWorld(t *testing.T, seed uint64, behind func(*simnet.Net)) (fail []string) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	hosts := 3 + rnd.IntN(3)
	link := simnet.Link{Delay: time.Duration(rnd.IntN(20)) * time.Millisecond, Rate: 1e6 * float64(1+rnd.IntN(50)), Window: 256 << 10}
	var said strings.Builder
	var transcript []string
	over := make(chan struct{})
	defer close(over)
	go func() { // a hang in real time
		select {
		case <-over:
		case <-time.After(3 * time.Minute):
			stacks := make([]byte, 1<<22)
			fmt.Fprintf(os.Stderr, "hangs: seed %v\n%s", seed, stacks[:runtime.Stack(stacks, true)])
			os.Exit(3)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(seed, hosts+1, link)
		l, err := n.Host(hosts).Listen("0.0.0.0:29400")
		require.NoError(t, err)
		hall, err := boot.ServeHall(l, worldSecret)
		require.NoError(t, err)
		at := netip.AddrPortFrom(n.Host(hosts).Addr(), 29400).String()
		ctx, cancel := context.WithCancel(context.Background())
		v := &worldJob{}
		var relay *boot.Relay
		if behind != nil {
			l, err := n.Host(hosts).Listen("0.0.0.0:29500")
			require.NoError(t, err)
			key, err := boot.RelayKey(worldSecret)
			require.NoError(t, err)
			relay, err = boot.ServeRelay(l, key, &boot.RelayOptions{Log: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			v.env = []string{"GOCCL_RELAY=" + netip.AddrPortFrom(n.Host(hosts).Addr(), 29500).String()}
			behind(n)
		}
		for i := range hosts {
			v.all = append(v.all, &process{host: n.Host(i), ended: make(chan struct{})})
		}
		var mu sync.Mutex
		start := func(i int) {
			v.all[i].begun = true
			log := slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(&said, "%d: %s", i, b)
				return len(b), nil
			}), nil))
			go v.run(ctx, i, at, log, n)
		}
		start(0)
		for founded := false; !founded; time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond) {
			v.mu.Lock()
			founded = v.all[0].last > 0
			v.mu.Unlock()
		}
		for i := 1; i < hosts; i++ {
			if rnd.IntN(2) == 0 {
				time.Sleep(time.Duration(rnd.IntN(700)) * time.Millisecond)
			}
			start(i)
		}
		// whole waits until all that live have made a round together that nobody had made before.
		whole := func() {
			began := time.Now()
			var living []*process
			v.mu.Lock()
			from := 0
			for _, s := range v.all {
				if !s.host.Ended() {
					living, from = append(living, s), max(from, s.last)
				}
			}
			v.mu.Unlock()
			for there := 0; there < len(living); time.Sleep(20 * time.Millisecond) {
				there = 0
				v.mu.Lock()
				for _, s := range living {
					if s.last > from && s.size == len(living) {
						there++
					}
				}
				v.mu.Unlock()
				if there < len(living) && time.Since(began) > wholeMost {
					var all []string
					for i, s := range v.all {
						all = append(all, fmt.Sprintf("%d: last %d of %d, %v", i, s.last, s.size, s.err))
					}
					v.add("no round of %d within %v: %v", len(living), wholeMost, all)
					return
				}
			}
		}
		for range 1 + rnd.IntN(5) {
			time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			last := time.Duration(rnd.IntN(4000)) * time.Millisecond
			a, b := rnd.IntN(hosts+1), rnd.IntN(hosts+1) // the hall's, too
			switch k := rnd.IntN(10); {
			case k < 4:
				n.Host(a).Stop()
				time.Sleep(last)
				n.Host(a).Go()
			case k < 6:
				n.Cut(a, b, true)
				time.Sleep(last)
				n.Cut(a, b, false)
			case k < 8:
				n.CutOff(a, true)
				time.Sleep(last)
				n.CutOff(a, false)
			case k == 8:
				n.Reset(a, b, -1)
			case a < hosts && !n.Host(a).Ended(): // half of those that go on may not end without a sign of it
				whole()
				n.Host(a).Kill(false)
				whole()
			}
		}
		began := time.Now()
		whole()
		formed := time.Since(began)
		v.mu.Lock()
		v.stop = true
		v.mu.Unlock()
		if len(v.fail) > 0 {
			transcript = n.Transcript()
			time.AfterFunc(5*time.Second, cancel)
		}
		for i, s := range v.all {
			if s.host.Ended() {
				continue
			}
			select {
			case <-s.ended:
				if !errors.Is(s.err, errDone) {
					v.add("process %d: %v", i, s.err)
				}
			case <-time.After(time.Minute):
				v.add("process %d does not end", i)
			}
		}
		cancel()
		for _, s := range v.all {
			if s.host.Ended() {
				s.host.Bury()
			}
			<-s.ended
		}
		hall.Close()
		if relay != nil {
			relay.Close()
		}
		if formed > 30*time.Second {
			t.Logf("seed %d: %v until a round of all", seed, formed)
		}
		time.Sleep(15 * time.Second)
		v.mu.Lock()
		defer v.mu.Unlock()
		fail = v.fail
	})
	if len(fail) > 0 && *seeds == 1 {
		fail = append(fail, said.String(), strings.Join(transcript, "\n"))
	}
	return fail
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Jobs in virtual time, with hosts that stop, are cut off, lose connections and end, the host of the hall among the first
// three: no process has other bits, none ends by itself, and once all is well all make rounds together again.
func TestWorld(t *testing.T) {
	for seed := *first; seed < *first+*seeds; seed++ {
		if fail := oneWorld(t, seed, nil); len(fail) > 0 {
			t.Errorf("seed %d: %s", seed, strings.Join(fail, "\n"))
		}
	}
}

// Two hosts have no way to each other but the relay.
func TestWorldRelay(t *testing.T) {
	for seed := *first; seed < *first+max(*seeds/4, 1); seed++ {
		if fail := oneWorld(t, seed, func(n *simnet.Net) { n.Unroute(0, 1) }); len(fail) > 0 {
			t.Errorf("seed %d: %s", seed, strings.Join(fail, "\n"))
		}
	}
}
