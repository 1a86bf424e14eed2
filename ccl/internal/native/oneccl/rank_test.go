//go:build oneccl && cgo && linux

package oneccl_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/native/oneccl"
	"github.com/goccl/goccl/internal/engine"
	"github.com/stretchr/testify/require"
)

// roleVar says what a process that a test has started is to do. Its ranks are processes, since oneCCL takes no
// others.
const roleVar = "GOCCL_TEST_ROLE"

var roles = map[string]func(r *rank){}

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := act(role); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0) // even with a thread in the library
}

// rank is a process of a test, which ends where something that it requires is not so.
type rank struct {
	*boot.Boot
	ctx context.Context
	lib *engine.Library
}

func (r *rank) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (r *rank) FailNow() { os.Exit(1) }

func act(name string) error {
	role := roles[name]
	if role == nil {
		return fmt.Errorf("no role %s", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	b, err := boot.Env(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	lib, err := oneccl.Backend().Open()
	if err != nil {
		return err
	}
	role(&rank{b, ctx, lib})
	return nil
}

// join makes the communicator of all ranks.
func (r *rank) join() engine.Engine {
	device, err := oneccl.Backend().Choose(-1, r.Rank(), r.Size())
	if err != nil { // the tests' machine may have fewer devices than ranks
		device, err = oneccl.Backend().Choose(0, r.Rank(), r.Size())
		require.NoError(r, err)
	}
	var id []byte
	if r.Rank() == 0 {
		id, err = r.lib.ID()
		require.NoError(r, err)
	}
	all, err := r.AllGather(r.ctx, id)
	require.NoError(r, err)
	e, err := r.lib.New(r.ctx, engine.Group{Rank: r.Rank(), Size: r.Size(), Device: device, Local: r.Rank(), Locals: r.Size(), Strict: true}, bytes.Clone(all[0]))
	require.NoError(r, err)
	return e
}

func (r *rank) barrier() {
	_, err := r.AllGather(r.ctx, nil)
	require.NoError(r, err)
}

// run starts n processes in a role, and returns what they print.
func run(t *testing.T, role string, n int, env ...string) (out string, err error) {
	t.Helper()
	return start(t, boot.Command{N: n}, role, env...)
}

// runOn is run, where a rank that ends does not end the others.
func runOn(t *testing.T, role string, n int) (out string, err error) {
	t.Helper()
	return start(t, boot.Command{N: n, KeepGoing: true}, role)
}

func start(t *testing.T, c boot.Command, role string, env ...string) (out string, err error) {
	t.Helper()
	need(t)
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	var text strings.Builder
	c.Path, c.Args, c.Prefix, c.Stdout, c.Stderr = os.Args[0], []string{"-test.run=^$"}, true, &text, &text
	c.Env = append(append(os.Environ(), roleVar+"="+role), env...)
	err = boot.Spawn(ctx, c)
	return text.String(), err
}

// ranks is run, for roles that all must play to the end.
func ranks(t *testing.T, role string, n int, env ...string) string {
	t.Helper()
	out, err := run(t, role, n, env...)
	require.NoError(t, err, "%s", out)
	return out
}

// need skips where there is no oneCCL.
func need(t *testing.T) {
	t.Helper()
	if os.Getenv("GOCCL_ONECCL_LIB") == "" {
		t.Skip("GOCCL_ONECCL_LIB names no oneCCL: make vendor-oneccl fetches one and runs this")
	}
}
