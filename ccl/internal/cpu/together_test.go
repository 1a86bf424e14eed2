package cpu

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/region"
)

// All ranks of a host that ask whether they close together get the same answer, whenever they ask;
// other hosts are none of their business.
func TestTogether(t *testing.T) {
	const long, short = time.Minute, time.Millisecond
	for _, tc := range []struct {
		name   string
		hosts  []string
		before func(all []*Comm) // on one goroutine
		ask    []int             // then these ask at once, and wait so long
		wait   time.Duration
		want   bool
	}{
		{"all", []string{"a", "a", "a"}, nil, []int{0, 1, 2}, long, true},
		{"a host's only rank", []string{"a", "b"}, nil, []int{1}, long, true},
		{"all of one host", []string{"a", "b", "a"}, nil, []int{0, 2}, long, true},
		{"one does not come", []string{"a", "a", "a"}, nil, []int{0, 2}, short, false},
		{"one after the other", []string{"a", "a"}, func(all []*Comm) { all[0].Together(short) }, []int{1}, long, false},
		{"one has failed", []string{"a", "a"}, func(all []*Comm) { all[0].Fail(call.NewFault(call.Backend, 0, "")) }, []int{0}, long, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := comms(t, tc.hosts)
			if tc.before != nil {
				tc.before(all)
			}
			got := make([]bool, len(all))
			var asked sync.WaitGroup
			for _, r := range tc.ask {
				asked.Go(func() { got[r] = all[r].Together(tc.wait) })
			}
			asked.Wait()
			for _, r := range tc.ask {
				require.Equal(t, tc.want, got[r], "rank %d", r)
				require.Equal(t, tc.want, all[r].rank.Share.Local.Leaving().Load()&region.Apart == 0)
			}
		})
	}
}
