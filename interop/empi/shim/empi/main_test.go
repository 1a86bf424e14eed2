package empi_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/emer/empi/mpi"
	"github.com/goccl/goccl/ccl/boot"
)

// scenes are what the ranks of a job do: a process can join but one.
var scenes = map[string]func(c *mpi.Comm) error{}

func TestMain(m *testing.M) {
	scene, ok := scenes[os.Getenv("EMPI_SCENE")]
	if !ok {
		os.Exit(m.Run())
	}
	mpi.Init()
	c, err := mpi.NewComm(nil)
	if err == nil {
		err = scene(c)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "rank %d: %v\n", mpi.WorldRank(), err)
		os.Exit(9)
	}
	mpi.Finalize()
}

// play runs a scene as so many ranks.
func play(t *testing.T, scene string, ranks int) {
	t.Helper()
	require.Contains(t, scenes, scene)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	self, err := os.Executable()
	require.NoError(t, err)
	var out bytes.Buffer
	err = boot.Spawn(ctx, boot.Command{N: ranks, Path: self, Env: append(os.Environ(), "EMPI_SCENE="+scene), Stdout: &out, Stderr: &out})
	require.NoError(t, err, &out)
}

// same fails unless a call succeeded and got what was wanted.
func same(what string, err error, got, want any) error {
	if err == nil && !reflect.DeepEqual(got, want) {
		err = fmt.Errorf("got %v, want %v", got, want)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
