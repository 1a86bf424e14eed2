//go:build unix

package boot

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/lobby"
)

var quickTempo = tempo{first: 5 * time.Millisecond, most: 20 * time.Millisecond, row: time.Hour}

// shell is a job of 3 ranks that run a script with a directory of their own, and are started again.
func shell(t *testing.T, restart int, p tempo, script string) (out string, err error) {
	t.Helper()
	dir := t.TempDir()
	b := givenUp{dir: dir}
	c := Command{N: 3, Path: "/bin/sh", Args: []string{"-c", script}, Restart: restart, Dir: dir, Grace: 50 * time.Millisecond,
		Stdout: &b, Stderr: &b, Prefix: true, Env: append(os.Environ(), "GOCCL_HALL=nested:1", "GOCCL_NEWCOMER=of another job")}
	err = spawnAt(within(t, long), c, p)
	return b.String(), err
}

// givenUp is the output of a job. It makes a file in dir once that says that a rank is given up.
type givenUp struct {
	bytes.Buffer
	dir string
}

func (g *givenUp) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "given up") {
		if err := os.WriteFile(filepath.Join(g.dir, "gone"), nil, 0o600); err != nil {
			return 0, err
		}
	}
	return g.Buffer.Write(b)
}

// await waits in a script until a file is there.
const await = `await() { until [ -e $1 ]; do sleep 0.01; done; }; `

// A rank that dies is started again as a newcomer, so many times in a row; the job ends well once the others do.
func TestRestart(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		restart      int
		p            tempo
		exit         ExitError
		says         []string // patterns
		not          string
	}{
		{"one is killed, and comes back", await + `
			case $GOCCL_RANK$GOCCL_NEWCOMER in
			1) kill -9 $$ ;;
			1.1) echo here, hall ${GOCCL_HALL%:*} size $GOCCL_SIZE root $GOCCL_ROOT local $GOCCL_LOCAL_RANK; touch back ;;
			*) await back ;;
			esac`, 2, quickTempo, ExitError{Rank: 1, Code: -1, Signal: os.Kill, Well: 2, Failed: 1, Restarted: 1},
			[]string{`(?m)^rank 1 was ended by a signal: killed; it is started again at once, 1 of 2 times in a row$`,
				`(?m)^\[1\] here, hall 127.0.0.1 size root local 1$`}, "given up"},
		{"one flaps", await + `
			case $GOCCL_RANK$GOCCL_NEWCOMER in
			2*) exit 3 ;;
			*) await gone ;;
			esac`, 2, quickTempo, ExitError{Rank: 2, Code: 3, Well: 2, Failed: 1, Restarted: 2},
			[]string{`at once, 1 of 2 times`, `in 5ms, 2 of 2 times`, `(?m)^rank 2 exited with code 3; it has been started 3 times in a row, and is given up$`}, "3 of"},
		{"a rank that has run for long begins a new row", await + `
			case $GOCCL_RANK$GOCCL_NEWCOMER in
			2.3) touch gone; await never ;;
			2*) exit 3 ;;
			*) await gone ;;
			esac`, 1, tempo{first: 5 * time.Millisecond, most: time.Second}, ExitError{Rank: 2, Code: 3, Well: 2, Failed: 1, Restarted: 3},
			[]string{`(?s)1 of 1.*1 of 1.*1 of 1`}, "2 of"},
		{"all fail, so there is no job", await + `[ "$GOCCL_NEWCOMER" ] && await never; exit 4`, 5, tempo{first: time.Hour, most: time.Hour}, ExitError{Code: 4, Failed: 3}, nil, "given up"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := shell(t, tc.restart, tc.p, tc.script)
			var e *ExitError
			require.ErrorAs(t, err, &e)
			got := *e
			if tc.exit.Rank == 0 { // any, and so many as there is time for
				got.Rank, got.Restarted = 0, 0
			}
			require.Equal(t, tc.exit, got, out)
			for _, p := range tc.says {
				require.Regexp(t, regexp.MustCompile(p), out)
			}
			require.NotContains(t, out, tc.not)
		})
	}
}

// Newcomers that wait when the job ends, well or not, hear in the hall that it is over; one that died is told of there.
func TestRestartTellsTheHall(t *testing.T) {
	for _, how := range []string{"well", "kill"} {
		var b bytes.Buffer
		c := Command{N: 2, Path: os.Args[0], Restart: 2, Stdout: &b, Stderr: &b, Grace: long,
			Env: append(os.Environ(), "BOOT_TEST_ROLE=hall", "BOOT_TEST_END="+how)}
		err := spawnAt(within(t, long), c, quickTempo)
		require.Error(t, err)
		require.Equal(t, 1, strings.Count(b.String(), "the newcomer 1.2 hears: gone/1.1 over\n"), b.String())
	}
}

func init() {
	roles["hall"] = guestOfHall
}

// guestOfHall is what the ranks of the test above do: rank 1 dies, and again as a newcomer; then it waits.
func guestOfHall(string) int {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	s, err := EnvStore()
	if err != nil || s == nil {
		fmt.Printf("no store: %v\n", err)
		return 1
	}
	switch os.Getenv("GOCCL_NEWCOMER") {
	case "":
		if os.Getenv("GOCCL_RANK") == "1" {
			return 5
		}
		if err := s.Wait(ctx, "ready"); err != nil {
			return 1
		}
		if os.Getenv("BOOT_TEST_END") == "kill" {
			p, _ := os.FindProcess(os.Getpid())
			p.Kill()
			select {}
		}
	case "1.1":
		return 5
	default:
		err := s.Wait(ctx, "goccl/gone/1.1")
		if err == nil {
			err = s.Set(ctx, "ready", nil)
		}
		if err == nil {
			err = s.Wait(ctx, "goccl/over")
		}
		if err != nil {
			fmt.Printf("%v\n", err)
			return 1
		}
		fmt.Printf("the newcomer 1.2 hears: gone/1.1 over\n")
	}
	return 0
}

// A process that was started by hand, and is no child of Spawn, hears that the job is over before the hall ends; one that stays then is
// waited for no longer than Grace.
func TestHallTellsGuestsOfTheEnd(t *testing.T) {
	for range 20 {
		r, err := newRestarts(&Command{N: 1, Hall: "127.0.0.1:0", Grace: long, Env: []string{}}, quickTempo)
		require.NoError(t, err)
		guest, err := DialHall(r.hall.Addr(), nil)
		require.NoError(t, err)
		heard := make(chan error, 1)
		go func() {
			err := guest.Wait(within(t, long), lobby.Over)
			for _, conn := range guest.(*hallClient).idle { // it ends
				conn.Close()
			}
			heard <- err
		}()
		require.Eventually(t, func() bool {
			r.hall.memoryStore.mu.Lock()
			defer r.hall.memoryStore.mu.Unlock()
			return r.hall.waiting[lobby.Over] != nil
		}, long, time.Millisecond)
		r.close()
		require.NoError(t, <-heard)
	}
	r, err := newRestarts(&Command{N: 1, Hall: "127.0.0.1:0", Grace: 20 * time.Millisecond, Env: []string{}}, quickTempo)
	require.NoError(t, err)
	stays, err := DialHall(r.hall.Addr(), nil)
	require.NoError(t, err)
	require.NoError(t, stays.Set(t.Context(), "x", nil))
	r.close()
	require.ErrorIs(t, stays.Set(t.Context(), "x", nil), Lost)
}

func TestRestartArguments(t *testing.T) {
	require.ErrorIs(t, Spawn(t.Context(), Command{N: 1, Path: "/bin/sh", Restart: -1}), Argument)
	require.ErrorIs(t, Spawn(t.Context(), Command{N: 1, Path: "/bin/sh", Hall: "nowhere"}), System)
}

// A hall alone, without restarts: ranks have its address, also where it listens on all interfaces.
func TestSpawnHall(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Spawn(within(t, long), Command{N: 1, Path: "/bin/sh", Args: []string{"-c", "echo $GOCCL_HALL"}, Hall: ":0", Stdout: &b}))
	require.Regexp(t, `^127\.0\.0\.1:\d+\n$`, b.String())
}
