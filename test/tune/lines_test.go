package main

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/cores"
)

// machineOf has sockets of so many cores, of which `share` in a row have one cache, with so many threads each.
func machineOf(sockets, each, share, threads int) []cores.Processor {
	n := sockets * each
	var all []cores.Processor
	for cpu := range n * threads {
		c := cpu % n
		all = append(all, cores.Processor{CPU: cpu, Core: c, Cache: c / share * share, Node: c / each * each, Socket: c / each * each})
	}
	return all
}

// Of each class of pairs some are picked, spread over the machine; threads of one core are none.
func TestPairs(t *testing.T) {
	for _, tc := range []struct {
		name                string
		all                 []cores.Processor
		same, other, socket pairs
	}{
		{"two sockets of 52 cores", machineOf(2, 52, 52, 2), pairs{{0, 51}, {52, 103}}, nil, pairs{{0, 52}}},
		{"a socket of 24 cores, 8 to a cache", machineOf(1, 24, 8, 1), pairs{{0, 7}, {8, 15}, {16, 23}}, pairs{{0, 8}, {8, 16}}, nil},
		{"two cores", machineOf(1, 2, 2, 1), pairs{{0, 1}}, nil, nil},
		{"one core, two threads", machineOf(1, 1, 1, 2), nil, nil, nil},
		{"a cache for each core", machineOf(1, 3, 1, 1), nil, pairs{{0, 1}, {1, 2}}, nil},
		{"nothing", nil, nil, nil, nil},
	} {
		same, other, socket := pairsOf(tc.all)
		require.Equal(t, tc.same, same, tc.name)
		require.Equal(t, tc.other, other, tc.name)
		require.Equal(t, tc.socket, socket, tc.name)
	}
	same, other, socket := pairsOf(machineOf(2, 64, 4, 2))
	require.Len(t, same, mostPairs, "of 32 groups")
	require.Len(t, other, mostPairs)
	require.Equal(t, [2]int{112, 115}, same[mostPairs-1])
	require.Equal(t, pairs{{0, 64}}, socket)
}

type pairs = [][2]int

// What cannot be measured is said, and stays in the row.
func TestPrintLines(t *testing.T) {
	var b strings.Builder
	printLines(&b, []*timing{
		{name: "Same", what: "one group", ns: []float64{40, 50, 47}},
		{name: "Socket", what: "two sockets", why: "this machine has one socket"},
	})
	require.Contains(t, b.String(), "one group                        47  40..50 on 3 pairs\n")
	require.Contains(t, b.String(), "two sockets                  not measured: this machine has one socket\n")
	require.Contains(t, b.String(), "  Lines: Lines{Same: 47, Socket: ?},\n")
}

// On this machine everything is measured that it has.
func TestTimeLines(t *testing.T) {
	all := usable(cores.Read(cores.System))
	if all == nil {
		t.Skip("hardware: the system does not say which cores share what")
	}
	list, err := timeLines(all, 1)
	require.NoError(t, err)
	require.Len(t, list, 5)
	same, other, socket := pairsOf(all)
	for i, want := range []int{len(same), len(other), len(socket), len(same)} {
		require.Len(t, list[i].ns, want, list[i].what)
	}
	for _, m := range list[:3] {
		for _, ns := range m.ns {
			require.Positive(t, ns, m.what)
		}
	}
	if len(cores.FirstThreads(all)) < shareCores {
		require.Equal(t, "?", list[4].value())
	}
	require.Equal(t, "linux", runtime.GOOS)
}
