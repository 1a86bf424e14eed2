package engine

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/environ"
)

// Each row says what a build without the engine needs, and no two say the same of one thing.
func TestRows(t *testing.T) {
	seen := map[string]string{}
	once := func(b *Backend, things ...string) {
		for _, x := range things {
			require.Empty(t, seen[x], "%s is %s's and %s's", x, seen[x], b.Name)
			seen[x] = b.Name
		}
	}
	for _, b := range Backends() {
		require.NotEmpty(t, b.Title)
		require.NotEmpty(t, b.Files.Env)
		require.NotEmpty(t, b.Files.Names)
		require.NotEmpty(t, b.Files.Advice)
		require.Nil(t, b.Open, "an engine of this package")
		require.Equal(t, b.Platform != "", b.Hardware.PCI != "", "a backend with devices has hardware")
		require.Same(t, b, Find(b.Name))
		once(b, b.Name)
		once(b, b.Aliases...)
		once(b, b.Settings...)
		once(b, b.Visible...)
		for _, h := range b.Harms {
			require.NotEmpty(t, h.Why, h.Name)
			require.NotEmpty(t, h.Remedy, h.Name)
		}
		for _, f := range b.Failures {
			require.NotEmpty(t, f.Advice)
			_, err := regexp.Compile(f.Pattern)
			require.NoError(t, err)
		}
	}
	require.Nil(t, Find("cpu"))
}

// A backend takes the place of its row; one without a row is behind all others.
func TestRegister(t *testing.T) {
	before := rows
	old := *Find("rccl")
	t.Cleanup(func() {
		Register(old)
		rows = before
	})
	Register(Backend{Name: "rccl", Title: "mine"})
	require.Equal(t, "mine", Backends()[1].Title)
	Register(Backend{Name: "abacus"})
	require.Len(t, before, 4)
	require.Equal(t, "abacus", Backends()[4].Name)
}

// What bench passes on to other hosts, by environ.Match.
func TestVariables(t *testing.T) {
	for name, want := range map[string]bool{"NCCL_DEBUG": true, "NCCL": false, "CUDA_VISIBLE_DEVICES": true, "CUDA_VISIBLE_DEVICES2": false, "MY_NCCL_DEBUG": false} {
		require.Equal(t, want, environ.Match(Variables(), name), name)
	}
}
