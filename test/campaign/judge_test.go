package campaign

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// A name is one job, and all of a job's processes see the same.
func TestPlanFollowsFromItsName(t *testing.T) {
	var all [kindCount]int
	for seed := range uint64(3000) {
		p, err := newPlan(fmt.Sprint(seed))
		require.NoError(t, err)
		again, err := newPlan(p.name)
		require.NoError(t, err)
		require.Equal(t, p, again)
		require.Len(t, p.process, p.ranks+p.spares+p.late)
		require.Len(t, p.host, len(p.process))
		for _, s := range p.steps {
			all[s.kind]++
			require.True(t, s.kind != killing || p.inProcess(s.victim) < p.ranks, "%v", p)
		}
		for _, name := range p.smaller() {
			less, err := newPlan(name)
			require.NoError(t, err)
			require.NotEqual(t, p.String(), less.String())
		}
	}
	for k, n := range all[:unread] {
		require.Greater(t, n, 100, "steps of kind %v", kind(k))
	}
	for _, name := range []string{"", "x", "1/keep", "1/bytes=0", "1/more"} {
		p, err := newPlan(name)
		require.True(t, err != nil || len(p.steps) == 0, "%q", name)
	}
}

// The judge finds what it is there for.
func TestJudge(t *testing.T) {
	p := &plan{ranks: 3, process: []int{0, 1, 2}, host: []int{0, 0, 0}}
	told := func(seat int, code ccl.Code, peer int, missing ...int) end {
		return end{Seat: seat, Trouble: late, Culprits: []int{2}, Of: 2, Code: code, Peer: peer, Missing: missing}
	}
	ended := func(seat, peer int, missing ...int) end {
		e := told(seat, ccl.ErrTimeout, peer, missing...)
		e.Trouble, e.Text = deadline, "timed out at rank 1; no response from: rank 1"
		return e
	}
	slow := told(1, ccl.ErrTimeout, 2, 2)
	slow.Took = bound + time.Second
	for _, tc := range []struct {
		name string
		ends []end
		more string
		want string
	}{
		{"all agree", []end{told(0, ccl.ErrTimeout, 2, 2), told(1, ccl.ErrTimeout, 2, 2)}, "", ""},
		{"one is silent", []end{told(0, ccl.ErrTimeout, 2, 2)}, "", "1 ranks of 2"},
		{"another code", []end{told(0, ccl.ErrTimeout, 2, 2), told(1, ccl.ErrRankLost, 2, 2)}, "", "code rank lost"},
		{"another peer", []end{told(0, ccl.ErrTimeout, 2, 2), told(1, ccl.ErrTimeout, -1)}, "", "another peer"},
		{"one that waits is named", []end{told(0, ccl.ErrTimeout, 1, 1), told(1, ccl.ErrTimeout, 1, 1)}, "", "it names seat 1"},
		{"others are missing", []end{told(0, ccl.ErrTimeout, 2, 1, 2), told(1, ccl.ErrTimeout, 2, 1, 2)}, "", "missing are [1 2]"},
		{"a context that had ended", []end{ended(0, 1, 1, 2), ended(1, 1, 1, 2)}, "", ""},
		{"a context that had ended, of one host", []end{ended(0, 1, 1), ended(1, 1, 1)}, "", ""},
		{"a context that had ended, and others", []end{ended(0, 1, 0, 1, 2), ended(1, 1, 0, 1, 2)}, "", "it names seat 1"},
		{"one waits too long", []end{told(0, ccl.ErrTimeout, 2, 2), slow}, "", "told after"},
		{"wrong data", nil, `{"Says":"wrong","Seat":1,"Text":"element 3"}`, "seat 1: element 3"},
		{"a crash", nil, "panic: index out of range", "a crash"},
		{"a rank without an end", nil, "-", "seat 2 has not come to its end"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var text strings.Builder
			for _, e := range tc.ends {
				b, err := json.Marshal(line{Says: "end", Seat: e.Seat, End: &e})
				require.NoError(t, err)
				fmt.Fprintf(&text, "%s\n", b)
			}
			for seat := range 3 - is(tc.more == "-") {
				fmt.Fprintf(&text, "{\"Says\":\"done\",\"Seat\":%d}\n", seat)
			}
			fmt.Fprintln(&text, tc.more)
			verdict, _ := p.judge(text.String())
			if tc.want == "" {
				require.Empty(t, verdict)
			}
			require.Contains(t, verdict, tc.want)
		})
	}
}

// A sum of 8-bit floats is rounded once, as are averages.
func TestSumOfFloat8(t *testing.T) {
	a := arithmetic[ccl.Float8E4M3]{number: func(v int) ccl.Float8E4M3 { return ccl.ToFloat8E4M3(float32(v)) },
		round: ccl.ToFloat8E4M3, exact: ccl.Float8E4M3.Float32}
	for n := 1; n <= 9; n++ {
		for i := range 100 {
			k := call{kind: ccl.KindAllReduce, op: ccl.Sum, salt: uint64(n)}
			sum := float32(0)
			for r := range n {
				sum += a.given(k, n, r, i).Float32()
			}
			require.Equal(t, ccl.ToFloat8E4M3(sum), a.folded(k, n, i))
			k.op, sum = ccl.Avg, 0
			for r := range n {
				sum += a.given(k, n, r, i).Float32()
			}
			require.Equal(t, ccl.ToFloat8E4M3(sum/float32(n)), a.folded(k, n, i))
		}
	}
}

// A sum of half-precision numbers is what float32 makes of them: nothing is rounded.
func TestSumIsExact(t *testing.T) {
	a := arithmetic[ccl.Float16]{number: func(v int) ccl.Float16 { return ccl.ToFloat16(float32(v)) },
		fold: func(_ ccl.Op, a, b ccl.Float16) ccl.Float16 { return ccl.ToFloat16(a.Float32() + b.Float32()) }}
	for n := 1; n <= 9; n++ {
		k := call{kind: ccl.KindAllReduce, op: ccl.Sum, salt: uint64(n)}
		for i := range 100 {
			sum := float32(0)
			for r := range n {
				sum += a.given(k, n, r, i).Float32()
			}
			require.Equal(t, sum, a.folded(k, n, i).Float32())
		}
	}
}
