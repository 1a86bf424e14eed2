package status

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
)

// Of a call that has waited for long the lowest rank that waits in it names the ranks that have not come.
func TestLateIn(t *testing.T) {
	at := func(rank int32, calls uint64, doing Doing) Status {
		return Status{Rank: rank, Size: 4, Calls: calls, Doing: doing, Peer: -1, Call: call.Record{Kind: call.AllReduce}}
	}
	recv := at(1, 5, Waits)
	recv.Call.Kind, recv.Peer, recv.Call.Root = call.Recv, 3, 3
	sends := func(rank, to int32) Status {
		s := at(rank, 5, Waits)
		s.Call.Kind, s.Peer, s.Call.Root = call.Send, to, to
		return s
	}
	for _, tc := range []struct {
		name    string
		mine    Status
		all     []Status
		ok      bool
		late    []int32
		unheard []int
		stuck   bool
	}{
		{"nobody has said anything", at(1, 5, Waits), nil, true, nil, []int{0, 2, 3}, false},
		{"one is late", at(1, 5, Waits), []Status{at(0, 4, AtWork), at(1, 5, Waits), at(2, 5, Waits)}, true, []int32{0}, []int{3}, false},
		{"two are late", at(1, 5, Waits), []Status{at(0, 4, AtWork), at(2, 3, Waits), at(3, 5, Waits)}, true, []int32{0, 2}, nil, false},
		{"a lower rank reports", at(1, 5, Waits), []Status{at(0, 5, Waits), at(2, 4, AtWork)}, false, nil, nil, false},
		{"a lower rank is in it, and at work", at(1, 5, Waits), []Status{at(0, 5, AtWork), at(2, 4, AtWork)}, true, []int32{2}, []int{3}, false},
		{"a receive waits for its peer", recv, []Status{at(0, 5, Waits), at(2, 4, AtWork), at(3, 5, Outside)}, true, []int32{3}, nil, false},
		{"the other end is in its send", recv, []Status{at(0, 5, Waits), at(2, 4, AtWork), sends(3, 1)}, true, nil, nil, true},
		{"the other end sends to another", recv, []Status{at(0, 5, Waits), at(2, 4, AtWork), sends(3, 2)}, true, []int32{3}, nil, false},
		{"the other end is lower, and reports", sends(3, 1), []Status{at(0, 5, Waits), at(2, 4, AtWork), func() Status {
			s := sends(1, 3)
			s.Call.Kind = call.Recv
			return s
		}()}, false, nil, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, ok := LateIn(tc.mine, tc.all)
			assert.Equal(t, tc.ok, ok)
			if !ok {
				return
			}
			assert.Equal(t, tc.mine, l.Waits)
			var late []int32
			for _, s := range l.Late {
				late = append(late, s.Rank)
			}
			assert.Equal(t, tc.late, late)
			assert.Equal(t, tc.unheard, l.Unheard)
			assert.Equal(t, tc.stuck, l.Stuck != nil)
		})
	}
}
