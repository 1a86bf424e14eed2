//go:build (nccl || rccl) && cgo && linux

package native

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// A child is this test binary as one rank, told by these variables who it is and what to do.
const (
	rankVariable = "NATIVE_TEST_RANK"
	sizeVariable = "NATIVE_TEST_SIZE"
	idVariable   = "NATIVE_TEST_ID"
	doVariable   = "NATIVE_TEST_DO"
	ofVariable   = "NATIVE_TEST_OF" // which vendor
)

func childMain() int {
	if err := child(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func child() error {
	me, _ := strconv.Atoi(os.Getenv(rankVariable))
	n, _ := strconv.Atoi(os.Getenv(sizeVariable))
	id, err := hex.DecodeString(os.Getenv(idVariable))
	if err != nil {
		return err
	}
	var v *vendor
	for _, c := range compiledIn {
		if c.name == os.Getenv(ofVariable) {
			v = c
		}
	}
	lib, err := v.load()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if os.Getenv(doVariable) == "start" {
		return start(ctx, lib)
	}
	g := engine.Group{Rank: me, Size: n, Device: me, Local: me, Locals: n}
	e, err := lib.New(ctx, g, id)
	if err != nil {
		return err
	}
	r, err := seat(lib, g, e)
	if err != nil {
		return err
	}
	switch os.Getenv(doVariable) {
	case "calls":
		if err := r.performAll(context.Background(), true); err != nil {
			return err
		}
		if os.Getenv("NATIVE_TEST_CONTEXTS") != "" {
			if err := r.ownContext(); err != nil {
				return err
			}
		}
		return r.Close()
	case "habits":
		return errors.Join(r.habits(ctx), r.Close(), mindful(os.Getenv(v.search.Env)))
	case "steady":
		return errors.Join(r.steady(ctx), r.Close(), mindful(os.Getenv(v.search.Env)))
	case "survive":
		return r.survive(ctx)
	}
	return errors.New("nothing to do")
}

// survive is to lose the last rank, which is killed by the parent after a first call, and to come to an end.
func (r *rank) survive(ctx context.Context) error {
	m, err := gpu.Alloc[int32](r.device, 1)
	if err != nil {
		return err
	}
	if err := errors.Join(r.issueOne(m), r.wait(ctx)); err != nil {
		return err
	}
	fmt.Println("ready")
	if r.group.Rank == r.group.Size-1 {
		select {}
	}
	if err := r.issueOne(m); err != nil {
		return err
	}
	err = r.wait(ctx)
	var l *engine.LibraryError
	if !errors.As(err, &l) || l.Result != 6 {
		return fmt.Errorf("a rank was killed: %w", err)
	}
	r.Abort()
	return errors.Join(r.stream.Wait(ctx), m.Free(), r.Close())
}

// start is what the real library can do without a GPU.
func start(ctx context.Context, lib *library) error {
	id, err := lib.ID()
	if err != nil {
		return err
	}
	_, err = lib.New(ctx, engine.Group{Size: 1, Locals: 1}, id)
	var l *engine.LibraryError
	fmt.Printf("%s, an id of %d bytes, %t, %v\n", lib.Version(), len(id), errors.As(err, &l), err)
	return nil
}

// children starts n ranks.
func children(t *testing.T, v *vendor, n int, do string, env ...string) []*exec.Cmd {
	t.Helper()
	id, err := open(t, v).ID()
	require.NoError(t, err)
	cmds := make([]*exec.Cmd, n)
	for i := range cmds {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), rankVariable+"="+strconv.Itoa(i), sizeVariable+"="+strconv.Itoa(n),
			idVariable+"="+hex.EncodeToString(id), doVariable+"="+do, ofVariable+"="+v.name)
		cmd.Env = append(cmd.Env, env...)
		cmds[i] = cmd
	}
	return cmds
}

func TestProcesses(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) { inProcesses(t, v, "calls") })
}

// TestKilled: a rank is killed in a call; the others hear of it, and their streams are let go.
func TestKilled(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		const n = 3
		cmds := children(t, v, n, "survive")
		ready := make(chan struct{}, n)
		go func() {
			for range n {
				<-ready
			}
			cmds[n-1].Process.Kill()
		}()
		each(t, n, func(i int) error {
			out, err := cmds[i].StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmds[i].Start())
			var first [6]byte
			io.ReadFull(out, first[:])
			ready <- struct{}{}
			rest, _ := io.ReadAll(out)
			if err := cmds[i].Wait(); (err != nil) != (i == n-1) {
				return fmt.Errorf("%w: %s%s", err, first, rest)
			}
			return nil
		})
	})
}

// TestComposed: all calls and failures again, on a library as it was before it had Split, Gather, Scatter, AlltoAll and
// configurations, and so blocks.
func TestComposed(t *testing.T) {
	if os.Getenv(libraryVariable) != "" {
		t.Skip("hardware: this is that test's child")
	}
	for _, tc := range []struct {
		name, run string
		without   []string
	}{
		{"2.18", "TestCalls|TestGroup$|TestClose$|TestProcesses|TestMemory$|TestWindow$", []string{"ncclGather", "ncclScatter", "ncclAlltoAll", "ncclAllToAll", "ncclCommShrink", "ncclCommWindowRegister"}},
		{"2.12", "TestCalls/.*/ranks=[23]|TestGroup|TestFailures|TestClose$|TestKilled|TestMemory$|TestWindow$", []string{"ncclGather", "ncclScatter", "ncclAlltoAll", "ncclAllToAll", "ncclCommShrink",
			"ncclCommSplit", "ncclCommInitRankConfig", "ncclCommFinalize", "ncclMemAlloc", "ncclCommWindowRegister"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := build(t, tc.without...)
			ctx, cancel := context.WithTimeout(t.Context(), 5*limit)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.short", "-test.run", tc.run, "-test.timeout", "90s")
			cmd.Env = append(os.Environ(), libraryVariable+"="+path)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			require.Equal(t, "PASS", strings.TrimSpace(string(out)))
		})
	}
}
