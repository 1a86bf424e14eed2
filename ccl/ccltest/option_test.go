package ccltest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// Where the options put the ranks: their hosts and processes.
func TestOptionPlaces(t *testing.T) {
	for _, tc := range []struct {
		name      string
		n         int
		opts      []Option
		hosts     []string // "" of one host
		processes []int    // nil of none
	}{
		{"none", 2, nil, []string{"", ""}, nil},
		{"blocks", 5, []Option{Hosts(2)}, []string{"host-0", "host-0", "host-0", "host-1", "host-1"}, nil},
		{"a host each", 3, []Option{Hosts(3)}, []string{"host-0", "host-1", "host-2"}, nil},
		{"in turn", 5, []Option{RoundRobin(2)}, []string{"host-0", "host-1", "host-0", "host-1", "host-0"}, nil},
		{"processes", 5, []Option{Processes(2)}, []string{"", "", "", "", ""}, []int{0, 0, 0, 1, 1}},
		{"both", 4, []Option{Processes(4), Hosts(2)}, []string{"host-0", "host-0", "host-1", "host-1"}, []int{0, 1, 2, 3}},
		{"the last counts", 2, []Option{Hosts(2), Hosts(1)}, []string{"host-0", "host-0"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, err := newWorld(tc.n, nil, tc.opts)
			require.NoError(t, err)
			for r := range tc.n {
				require.Equal(t, tc.hosts[r], w.hostID(r), "rank %d", r)
				if tc.processes != nil {
					require.Equal(t, tc.processes[r], w.process(r), "rank %d", r)
				}
			}
			require.Equal(t, tc.processes == nil, w.processes == nil)
			require.Equal(t, defaultDeadline, w.deadline)
			require.Equal(t, defaultDeadline, w.options.PeerTimeout, "a rank on a busy machine is not lost")
		})
	}
}

// What no job can be is refused.
func TestOptionRefused(t *testing.T) {
	for want, opts := range map[string][]Option{
		"0 hosts for 3 ranks; each host needs one rank at least":        {Hosts(0)},
		"4 hosts for 3 ranks; each host needs one rank at least":        {RoundRobin(4)},
		"0 processes for 3 ranks; each process needs one rank at least": {Processes(0)},
		"4 processes for 3 ranks; each process needs one rank at least": {Processes(4)},
		"a deadline of -1s; it must be more than 0":                     {Deadline(-time.Second)},
	} {
		_, err := newWorld(3, nil, opts)
		require.EqualError(t, err, want)
	}
	_, err := newWorld(0, nil, nil)
	require.EqualError(t, err, "0 ranks; a job has at least one")
}

// With keeps a PeerTimeout that is given, and Deadline rules the one that is not.
func TestOptionOfTheComm(t *testing.T) {
	w, err := newWorld(1, nil, []Option{Deadline(time.Minute), With(ccl.Options{RankOrder: true})})
	require.NoError(t, err)
	require.True(t, w.options.RankOrder)
	require.Equal(t, time.Minute, w.options.PeerTimeout)
	w, err = newWorld(1, nil, []Option{With(ccl.Options{PeerTimeout: time.Second})})
	require.NoError(t, err)
	require.Equal(t, time.Second, w.options.PeerTimeout)
}
