package ccl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// heldMemory is what this process has of the memory of its host's jobs: how much all processes have taken of it, how often it is mapped here,
// and how many files are open.
type heldMemory struct{ kib, maps, files int }

func holds(t testing.TB) (h heldMemory) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, f := range files {
		name := "/proc/self/fd/" + f.Name()
		if l, _ := os.Readlink(name); strings.Contains(l, "memfd:goccl") {
			var st syscall.Stat_t
			if syscall.Stat(name, &st) == nil { // else it has just been closed
				h.kib += int(st.Blocks / 2)
			}
		}
	}
	h.files, h.maps = len(files), mappings(t)
	return h
}

// heldWhere says which memory that is: the ranges that have been written to of each file, with what is mapped of it here, and which files
// are open.
func heldWhere(t testing.TB) string {
	t.Helper()
	var text strings.Builder
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, f := range files {
		l, err := os.Readlink("/proc/self/fd/" + f.Name())
		if err != nil {
			continue
		}
		fmt.Fprintf(&text, "%s: %s", f.Name(), l)
		if fd, _ := strconv.Atoi(f.Name()); strings.Contains(l, "memfd:goccl") {
			var st syscall.Stat_t
			require.NoError(t, syscall.Fstat(fd, &st))
			fmt.Fprintf(&text, " %d KiB:", st.Blocks/2)
			for to := int64(0); ; {
				from, err := syscall.Seek(fd, to, seekData)
				if err != nil {
					break
				}
				if to, err = syscall.Seek(fd, from, seekHole); err != nil {
					break
				}
				fmt.Fprintf(&text, " %#x+%#x", from, to-from)
			}
		}
		text.WriteByte('\n')
	}
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "memfd:goccl") {
			text.WriteString(line)
		}
	}
	return text.String()
}

// What lseek(2) looks for.
const seekData, seekHole = 3, 4

// slicesMapped is how many bytes of slices this process has mapped: mappings beside each other may be one.
func slicesMapped(t testing.TB) (bytes int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	for line := range strings.SplitSeq(string(maps), "\n") {
		var from, to int
		if _, err := fmt.Sscanf(line, "%x-%x ", &from, &to); err == nil && strings.Contains(line, "memfd:goccl slices") {
			bytes += to - from
		}
	}
	return bytes
}

// staged is how much more of it may be taken, in KiB: what calls stage is taken on first use. A killed process had three times that.
const staged = 2 << 10

// reapFloats are the elements of each rank's slice: 4 MiB.
const reapFloats = 1 << 20

// TestReapProcess is not a test of its own: it is what the processes run that the tests below
// start. In each round all ranks sum in the slices that they have had from the start, on a Comm and
// on one of Split; then number 1 is killed, and perhaps number 2 in what follows. They are
// replaced, or the job shrinks and grows. Number 0 looks what is left of the dead.
func TestReapProcess(t *testing.T) {
	kills, err := strconv.Atoi(os.Getenv("CCL_TEST_REAP"))
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*long+time.Duration(kills)*5*time.Second)
	defer cancel()
	c, err := ccl.Join(ctx, nil)
	if errors.Is(err, ccl.ErrUnused) {
		return
	}
	require.NoError(t, err)
	defer func() { c.Close() }()
	n := c.Size()
	mem, err := ccl.MakeSlice[float32](ctx, c, reapFloats)
	require.NoError(t, err)
	var first heldMemory
	for round := 0; ; {
		err := restored(ctx, c, &round)
		if err == nil {
			err = reapRound(ctx, t, c, mem, func() {
				if c.Rank() > 0 {
					return
				}
				if round == 0 {
					first = holds(t)
				}
				until(t, fmt.Sprintf("%+v at first, and more after %d kills", first, round), func() bool {
					h := holds(t)
					return h.kib <= first.kib+staged && h.maps <= first.maps+12 && h.files <= first.files+1
				})
				if t.Failed() {
					fmt.Print(heldWhere(t))
				}
				fmt.Printf("round %d: %+v\n", round, holds(t))
			})
		}
		if err == nil && round >= kills {
			break
		}
		if err == nil {
			if c.Rank() == 1 {
				killSelf()
			}
			err = untilFailed(ctx, c)
			if c.Rank() == 2 && os.Getenv("CCL_TEST_REAP_TWO") != "" {
				time.AfterFunc(time.Duration(round)*time.Millisecond, killSelf)
			}
		}
		require.ErrorIs(t, err, ccl.ErrRankLost)
		next, err := c.Replace(ctx)
		var e *ccl.Error
		if errors.As(err, &e) && (e.Code == ccl.ErrUnsupported || len(e.Missing) > 0) { // there is no spare
			next, err = c.Shrink(ctx)
		}
		require.NoError(t, err)
		require.NoError(t, c.Close())
		for c = next; c.Size() < n; time.Sleep(time.Millisecond) {
			next, err := ccl.Grow(ctx, c, n)
			require.NoError(t, err)
			if next != c {
				require.NoError(t, c.Close())
				c = next
			}
		}
		round++
	}
	fmt.Printf("number %d of %d\n", c.Rank(), n)
}

// reapRound sums in mem, and calls look while all stand still.
func reapRound(ctx context.Context, t testing.TB, c *ccl.Comm, mem []float32, look func()) error {
	part, err := c.Split(ctx, 0, 0)
	if err != nil {
		return err
	}
	defer part.Close()
	sum := float32(c.Size() * (c.Size() + 1) / 2)
	for _, on := range []*ccl.Comm{c, part} {
		for i := range mem {
			mem[i] = float32(c.Rank() + 1)
		}
		if err := ccl.AllReduce(ctx, on, mem, mem, ccl.Sum); err != nil {
			return err
		}
		for i, v := range mem {
			if v != sum {
				t.Fatalf("element %d is %v, and not %v", i, v, sum)
			}
		}
	}
	if err := ccl.Barrier(ctx, c); err != nil {
		return err
	}
	require.GreaterOrEqual(t, slicesMapped(t), 4*len(mem)*c.Size(), "the slices of all are worked on where they lie")
	look()
	return ccl.Barrier(ctx, c)
}

// reapProcesses runs TestReapProcess as so many processes, and checks that all has come to its end.
func reapProcesses(t *testing.T, cmd boot.Command, workers, kills int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*long+time.Duration(kills)*5*time.Second)
	defer cancel()
	var out bytes.Buffer
	cmd.Path, cmd.Args, cmd.Stdout, cmd.Stderr = os.Args[0], []string{"-test.run=^TestReapProcess$"}, &out, &out
	cmd.Env = append(append(os.Environ(), "CCL_TEST_REAP="+strconv.Itoa(kills), "GORACE=atexit_sleep_ms=0"), cmd.Env...)
	err := boot.Spawn(ctx, cmd)
	text := out.String()
	require.NoError(t, ctx.Err(), "%v\n%s", err, text)
	require.NotRegexp(t, `SIGSEGV|SIGBUS|fatal error|FAIL|panic`, text)
	looks := strings.Count(text, "round ")
	if cmd.KeepGoing && cmd.N > workers+kills {
		require.GreaterOrEqual(t, looks, 2, text)
	} else {
		require.Equal(t, kills+1, looks, text)
	}
	require.Equal(t, workers, strings.Count(text, fmt.Sprintf(" of %d\n", workers)), text)
	t.Log(text)
}

// What a process had that was killed goes back to the host once it has been replaced: its slices, and the memory of all Comms that it
// was in.
func TestReplaceLeavesNoMemory(t *testing.T) {
	const workers = 3
	kills := 4
	if s := os.Getenv("CCL_TEST_KILLS"); s != "" { // make soak
		var err error
		kills, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	reapProcesses(t, boot.Command{N: workers + kills, KeepGoing: true, Env: []string{fmt.Sprint("GOCCL_SPARES=", kills)}}, workers, kills)
}

// The same where another process is killed while the first one is replaced: it is leaving the Comms that have failed, or making new ones.
func TestReplaceOfTwoLeavesNoMemory(t *testing.T) {
	workers, kills := 3, 4
	if testing.Short() {
		kills = 2
	}
	reapProcesses(t, boot.Command{N: workers + 2*kills, KeepGoing: true, Env: []string{fmt.Sprint("GOCCL_SPARES=", 2*kills), "CCL_TEST_REAP_TWO=1"}}, workers, kills)
}

// Slices of a job that grows are what they were before, also to the processes that come late, and nothing is left of those that were
// killed.
func TestGrowKeepsSlices(t *testing.T) {
	const workers, kills = 3, 2
	reapProcesses(t, boot.Command{N: workers, Restart: kills}, workers, kills)
}
