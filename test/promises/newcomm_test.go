//go:build linux

package promises

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

const newCommPart = "killed in NewComm"

// mortal is a bootstrap whose rank is killed once it knows of all others, which then wait for it to share memory with
// them or to connect.
type mortal struct{ *boot.Boot }

func (m mortal) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	all, err := m.Boot.AllGather(ctx, mine)
	if argument() == strconv.Itoa(m.Rank()) {
		time.Sleep(50 * time.Millisecond) // the others have it, too
		sayAt("victim", m.Rank(), nil)
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return all, err
}

// TestNewCommProcess is not a test of its own: it is what the processes of the next run.
func TestNewCommProcess(t *testing.T) {
	if os.Getenv(partVar) != newCommPart {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b, err := boot.Env(ctx)
	require.NoError(t, err)
	defer b.Close()
	_, err = ccl.NewComm(ctx, mortal{b}, &ccl.Options{PeerTimeout: peerTimeout, Log: slog.New(slog.DiscardHandler)})
	sayAt("heard", b.Rank(), err)
}

func TestR1KilledInNewCommIsNamed(t *testing.T) {
	trials := times(1, 5)
	var took []time.Duration
	for _, tc := range []struct{ hosts, victim int }{{0, 0}, {0, 1}, {2, 0}, {2, 2}, {2, 3}, {4, 0}, {4, 2}} {
		for range trials {
			lines, text := processesOf(t, "TestNewCommProcess", 4, tc.hosts, newCommPart, fmt.Sprint(tc.victim))
			ended := first(t, lines, "victim", tc.victim, text).at
			for r := range 4 {
				if r == tc.victim {
					continue
				}
				l := first(t, lines, "heard", r, text)
				require.Equal(t, ccl.ErrRankLost, l.code, text)
				require.Equal(t, tc.victim, l.peer, text)
				took = append(took, l.at.Sub(ended))
			}
		}
	}
	middle, largest := spread(took)
	const promise = 100 * time.Millisecond
	record(t, 1, "R1", "a rank is killed in NewComm", "≤ "+promise.String(), "median %v, max %v (%d trials)", round(middle), round(largest), 7*trials)
	asserted(t, "killed in NewComm", largest, promise)
}

const unmetPart = "closes unmet"

// TestUnmetProcess is not a test of its own: it is what the processes of the next run.
func TestUnmetProcess(t *testing.T) {
	if os.Getenv(partVar) != unmetPart {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := ccl.Join(ctx, &ccl.Options{PeerTimeout: peerTimeout, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	if argument() == strconv.Itoa(c.Rank()) {
		require.NoError(t, c.Close())
		sayAt("victim", c.Rank(), nil)
		return
	}
	sayAt("called", c.Rank(), nil)
	err = ccl.AllReduce(ctx, c, []int{0}, []int{1}, ccl.Sum)
	sayAt("heard", c.Rank(), err)
	c.Close()
}

// A rank leaves in good order before any other has connected with it: no connection is there to say so.
func TestR12ClosedUnmet(t *testing.T) {
	trials := times(1, 5)
	var took []time.Duration
	for i, tc := range []struct{ hosts, victim int }{{4, 3}, {2, 2}, {4, 1}, {2, 3}} {
		if i > 1 && !*write { // TestR12ClosedUnmetBetweenHosts has them all
			break
		}
		for range trials {
			lines, text := processesOf(t, "TestUnmetProcess", 4, tc.hosts, unmetPart, fmt.Sprint(tc.victim))
			for r := range 4 {
				if r == tc.victim {
					continue
				}
				l := first(t, lines, "heard", r, text)
				require.Equal(t, ccl.ErrClosed, l.code, text)
				require.Equal(t, tc.victim, l.peer, text)
				took = append(took, l.at.Sub(first(t, lines, "called", r, text).at))
			}
		}
	}
	middle, largest := spread(took)
	const promise = 50 * time.Millisecond
	record(t, 12, "R12", "a rank closes before others have connected with it", "≤ "+promise.String(), "median %v, max %v (%d trials)", round(middle), round(largest), len(took)/3)
	asserted(t, "closed unmet", largest, promise)
}
