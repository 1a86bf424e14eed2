package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Where NCCL's log goes is told on machines with NCCL, and what loses or mixes it is a warning.
func TestLogged(t *testing.T) {
	for _, tc := range []struct {
		env         []string
		level, text string
	}{
		{nil, ok, "none: with NCCL_DEBUG=WARN"},
		{[]string{"NCCL_DEBUG=WARN"}, ok, "NCCL_DEBUG=WARN, on standard output; NCCL_DEBUG_FILE=nccl.%h.%p takes"},
		{[]string{"NCCL_DEBUG=WARN", "NCCL_DEBUG_FILE=/tmp/n.%h.%p"}, ok, "NCCL_DEBUG=WARN, in /tmp/n.%h.%p (%h: the host, %p: the process)"},
		{[]string{"NCCL_DEBUG=WARN", "NCCL_DEBUG_FILE=/tmp/n.%h"}, warning, "all processes write into one file, /tmp/n.%h"},
		{[]string{"NCCL_DEBUG_FILE=/tmp/n.%p"}, warning, "NCCL_DEBUG_FILE=/tmp/n.%p without NCCL_DEBUG: nothing is logged"},
	} {
		e := healthy()
		for _, f := range e.ranks {
			f.Env = tc.env
		}
		e.logged()
		require.Len(t, e.found, 1)
		require.Equal(t, tc.level, e.found[0].Level)
		require.Contains(t, e.found[0].Text, tc.text)
	}
	e := healthy()
	for _, f := range e.ranks {
		f.Libraries = nil
	}
	e.logged()
	require.Empty(t, e.found, "there is no NCCL")
}

// Unequal hosts are what NCCL is known to hang with.
func TestUnequalHosts(t *testing.T) {
	e := healthy()
	e.ranks[3].Host, e.ranks[3].Leader = "h1", false
	e.nodes()
	require.Contains(t, e.found[0].Remedy, "NCCL 2.31 is known to hang in its start otherwise")
}
