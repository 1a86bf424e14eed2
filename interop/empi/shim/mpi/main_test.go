package mpi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/emer/empi/mpi"
	"github.com/goccl/goccl/ccl/boot"
)

// scenes are what the ranks of a job do: a process can join but one. A scene's error ends its rank with status 9.
var scenes = map[string]func() error{}

func TestMain(m *testing.M) {
	scene, ok := scenes[os.Getenv("EMPI_SCENE")]
	if !ok {
		os.Exit(m.Run())
	}
	if err := scene(); err != nil {
		fmt.Fprintf(os.Stderr, "rank %d: %v\n", mpi.WorldRank(), err)
		os.Exit(9)
	}
}

// played is a scene as so many ranks: what they wrote, and how it ended.
func played(t *testing.T, scene string, ranks int, env ...string) (out string, err error) {
	t.Helper()
	require.Contains(t, scenes, scene)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	self, err := os.Executable()
	require.NoError(t, err)
	var b bytes.Buffer
	err = boot.Spawn(ctx, boot.Command{
		N: ranks, Path: self, Env: append(append(os.Environ(), "EMPI_SCENE="+scene), env...), Stdout: &b, Stderr: &b, Prefix: true,
	})
	require.NoError(t, ctx.Err(), "not done after a minute:\n%s", &b)
	return b.String(), err
}

// joined is a scene between Init and Finalize, on the communicator of all.
func joined(scene func(c *mpi.Comm) error) func() error {
	return func() error {
		mpi.Init()
		c, err := mpi.NewComm(nil)
		if err != nil {
			return err
		}
		if err := scene(c); err != nil {
			return err
		}
		mpi.Finalize()
		return nil
	}
}

// all is the first failure of several comparisons.
func all(errs ...error) error { return errors.Join(errs...) }

// same fails unless a call succeeded and got what was wanted.
func same(err error, got, want any) error {
	if err != nil {
		return err
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		_, _, line, _ := runtime.Caller(1)
		return fmt.Errorf("line %d: got %v, want %v", line, got, want)
	}
	return nil
}

// fails fails unless a call failed with a text.
func fails(err error, want string) error {
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) {
		_, _, line, _ := runtime.Caller(1)
		return fmt.Errorf("line %d: got error %v, want %s", line, err, want)
	}
	return nil
}
