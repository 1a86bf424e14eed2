package elastic_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/train/elastic"
)

const long = 2 * time.Minute

// errDone ends the program below on all ranks.
var errDone = errors.New("done")

// TestProgram is not a test of its own: it is the program whose processes TestChurn starts.
func TestProgram(t *testing.T) {
	dir := os.Getenv("ELASTIC_TEST_DIR")
	if dir == "" {
		return
	}
	state, step, mean := make([]float64, 5000), make([]float64, 5000), make([]float64, 5000)
	round, stop := []int64{0}, []int64{0}
	silent, _ := time.ParseDuration(os.Getenv("ELASTIC_TEST_PEER_TIMEOUT"))
	size, _ := strconv.Atoi(os.Getenv("ELASTIC_TEST_SIZE")) // of more state, so that it takes a while to send
	err := elastic.Run(t.Context(), &elastic.Job{
		State:   []ccl.Buf{ccl.BufOf(state), ccl.BufOf(round), ccl.BufOf(make([]float64, size))},
		Most:    4,
		Options: &ccl.Options{PeerTimeout: silent},
		Local: func(_ context.Context, n int) error {
			for i := range step {
				step[i] = float64(n + 1)
			}
			return nil
		},
		Share: func(ctx context.Context, r *elastic.Round) error {
			for _, cut := range [][2]int{{0, 1000}, {1000, 5000}} {
				if err := elastic.Mean(ctx, r, mean[cut[0]:cut[1]], step[cut[0]:cut[1]]); err != nil {
					return err
				}
			}
			_, over := os.Stat(filepath.Join(dir, "stop"))
			if stop[0] = 0; over == nil {
				stop[0] = 1
			}
			if err := ccl.AllReduce(ctx, r.Comm, stop, stop, ccl.Max); err != nil {
				return err
			}
			for i, x := range mean {
				state[i] += x
			}
			if round[0]++; round[0] != int64(r.N+1) {
				return fmt.Errorf("round %d has the number %d", round[0], r.N+1)
			}
			fmt.Println("round", round[0], r.Comm.Size(), state[0], state[4999])
			if stop[0] == 1 {
				return errDone
			}
			return nil
		},
	})
	require.ErrorIs(t, err, errDone)
}

// peers are the processes of a test, and what they have said.
type peers struct {
	t       *testing.T
	env     []string
	returns bool // any of them may come back as a newcomer, and so miss rounds
	mu      sync.Mutex
	all     []*peer
	fail    string
}

type peer struct {
	*exec.Cmd
	last, size int
	killed     bool
	ended      chan error
}

func (p *peers) start() *peer {
	one := &peer{Cmd: exec.Command(os.Args[0], "-test.run=^TestProgram$"), ended: make(chan error, 1)}
	p.mu.Lock()
	one.Env, one.Stderr = append(slices.Clip(p.env), fmt.Sprint("GOCCL_HOSTID=host", len(p.all))), os.Stderr
	p.mu.Unlock()
	out, err := one.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, one.Start())
	p.t.Cleanup(func() { one.Process.Kill() })
	p.mu.Lock()
	p.all = append(p.all, one)
	p.mu.Unlock()
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			var n, size int
			var first, last float64
			if _, err := fmt.Sscanf(s.Text(), "round %d %d %g %g", &n, &size, &first, &last); err != nil {
				continue
			}
			p.mu.Lock()
			if want := float64(n*(n+1)) / 2; first != want || last != want {
				p.fail = fmt.Sprintf("%s: the state is %v and %v, not %v", s.Text(), first, last, want)
			}
			if !p.returns && one.last > 0 && n != one.last+1 && n != one.last+2 { // it may have missed the end of one round
				p.fail = fmt.Sprintf("%s comes after round %d", s.Text(), one.last)
			}
			one.last, one.size = n, size
			p.mu.Unlock()
		}
		one.ended <- one.Wait()
	}()
	return one
}

// until waits until n processes, those that live, have ended a round of n ranks that none had ended before.
func (p *peers) until(n int) {
	p.mu.Lock()
	from := 0
	for _, one := range p.all {
		from = max(from, one.last)
	}
	p.mu.Unlock()
	require.Eventually(p.t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Empty(p.t, p.fail)
		there := 0
		for _, one := range p.all {
			if !one.killed && one.last > from && one.size == n {
				there++
			}
		}
		return there == n
	}, long, 5*time.Millisecond, "no round of %d ranks", n)
}

// A process begins, three come at once, one after the other is killed, rank 0 among them, and others
// come. Every round of every process has the exact state. Those that are there at the end end well,
// and one that comes too late hears that.
func TestChurn(t *testing.T) {
	hall, err := boot.ListenHall("127.0.0.1:0", nil)
	require.NoError(t, err)
	defer hall.Close()
	dir := t.TempDir()
	p := &peers{t: t, env: append(os.Environ(), "ELASTIC_TEST_DIR="+dir, "GOCCL_HALL="+hall.Addr(), "GOCCL_LOG=quiet", "GORACE=atexit_sleep_ms=0")}
	kill := func(one *peer) {
		p.mu.Lock()
		one.killed = true
		p.mu.Unlock()
		require.NoError(t, one.Process.Kill())
	}
	p.start()
	p.until(1)
	for range 3 {
		p.start()
	}
	p.until(4)
	kill(p.all[0]) // rank 0
	p.until(3)
	p.start()
	p.until(4)
	kill(p.all[2]) // one after the other: half of the ranks at once may be a partition
	p.until(3)
	kill(p.all[3])
	p.until(2)
	p.start()
	p.until(3)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stop"), nil, 0o600))
	for _, one := range p.all {
		if err := <-one.ended; !one.killed {
			require.NoError(t, err)
		}
	}
}
