//go:build oneccl && cgo && linux

package oneccl_test

import (
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

var roles = map[string]func(r *rank) error{}

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

// rank is a process of a test.
type rank struct {
	*boot.Boot
	ctx context.Context
	lib *engine.Library
}

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
	return role(&rank{b, ctx, lib})
}

// join makes the communicator of all ranks.
func (r *rank) join() (engine.Engine, error) {
	device, err := oneccl.Backend().Choose(-1, r.Rank(), r.Size())
	if err != nil {
		// The tests' machine may have fewer devices than ranks.
		if device, err = oneccl.Backend().Choose(0, r.Rank(), r.Size()); err != nil {
			return nil, err
		}
	}
	return r.joinOn(device)
}

func (r *rank) joinOn(device int) (engine.Engine, error) {
	id, err := r.id()
	if err != nil {
		return nil, err
	}
	return r.lib.New(r.ctx, engine.Group{Rank: r.Rank(), Size: r.Size(), Device: device, Local: r.Rank(), Locals: r.Size(), Strict: true}, id)
}

// id is what rank 0 has made.
func (r *rank) id() (id []byte, err error) {
	if r.Rank() == 0 {
		if id, err = r.lib.ID(); err != nil {
			return nil, err
		}
	}
	all, err := r.AllGather(r.ctx, id)
	if err != nil {
		return nil, err
	}
	return append([]byte(nil), all[0]...), nil
}

func (r *rank) barrier() error {
	_, err := r.AllGather(r.ctx, nil)
	return err
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
