package shrink

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/agree"
)

func TestNotice(t *testing.T) {
	for _, n := range []notice{
		{agree.Notice{Kind: agree.Here}, 0, 1},
		{agree.Notice{Kind: agree.Propose, Ballot: 7<<32 | 2, Ranks: []int32{0, 2, 3}}, 0, 3},
		{agree.Notice{Kind: agree.Decide, Ballot: 1 << 63, Ranks: []int32{3}}, 0, 0},
		{agree.Notice{Kind: agree.Decide, Ballot: 1 << 63, Ranks: []int32{3}, Ended: []int32{2, 0}}, 0, 0},
		{agree.Notice{Kind: agree.Ready, Lead: 1, Ballot: 7, For: []int32{0, 1, 3}}, 0, 0},
		{agree.Notice{Kind: agree.Here, Lead: 3, Ballot: 7, Ranks: []int32{1, 2}, Ended: []int32{0}, For: []int32{2}, Left: []int32{0, 3}, Sure: []int32{3}}, 0, 0},
		{agree.Notice{Kind: agree.Quit, Ranks: []int32{1}}, call.Closed, 0},
	} {
		b := n.append([]byte("before"))[len("before"):]
		got, taken, err := parseNotice(append(b, 1, 2, 3), 4)
		require.NoError(t, err)
		require.Equal(t, len(b), taken)
		require.Equal(t, n, got)
		for cut := range len(b) {
			_, taken, err := parseNotice(b[:cut], 4)
			require.NoError(t, err)
			require.Zero(t, taken)
		}
		for i := range b {
			bad := bytes.Clone(b)
			bad[i] ^= 0x10
			got, taken, err := parseNotice(bad, 4)
			require.True(t, err != nil || taken == 0, "byte %d of %v: %v", i, n, got)
		}
	}
	b := (&notice{says: agree.Notice{Kind: agree.Here, Ranks: []int32{4}}}).append(nil)
	_, _, err := parseNotice(b, 4)
	require.Error(t, err, "there is no rank 4")
	_, _, err = parseNotice((&notice{says: agree.Notice{Kind: agree.Here, Lead: 4}}).append(nil), 4)
	require.Error(t, err, "nor can it lead")
	_, _, err = parseNotice((&notice{says: agree.Notice{Kind: agree.Here, Lead: -1}}).append(nil), 4)
	require.Error(t, err)
	b = (&notice{says: agree.Notice{Kind: agree.Decide, Ended: []int32{4}}}).append(nil)
	_, _, err = parseNotice(b, 4)
	require.Error(t, err, "nor has it ended")
	for _, runs := range [][2]uint32{{1, 4}, {4, 1}, {1 << 31, 1}, {0, 1 << 31}, {2, 0}} {
		b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, runs[0]), runs[1])
		_, _, err = parseRuns(b, 1, 4)
		require.Error(t, err, "%d ranks from %d", runs[1], runs[0])
	}
	two := appendRuns(appendRuns(nil, []int32{0, 1, 2}), []int32{0, 1})
	_, _, err = parseRuns(two, 2, 4)
	require.Error(t, err, "more ranks than there are")
	for _, ranks := range [][]int32{{2, 1}, {1, 1}} {
		_, _, err = parseNotice((&notice{says: agree.Notice{Kind: agree.Propose, Ranks: ranks}}).append(nil), 4)
		require.Error(t, err, "%v is no list of members", ranks)
	}
}

func FuzzNotice(f *testing.F) {
	f.Add((&notice{says: agree.Notice{Kind: agree.Here}, attempt: 1}).append(nil))
	f.Add((&notice{says: agree.Notice{Kind: agree.Decide, Ballot: 1 << 33, Ranks: []int32{0, 1}}}).append(nil))
	f.Add((&notice{says: agree.Notice{Kind: agree.Decided, Ballot: 1 << 33, Ranks: []int32{0, 1}, Ended: []int32{2}}}).append(nil))
	f.Add((&notice{says: agree.Notice{Kind: agree.Quit, Ranks: []int32{3}}, code: call.Timeout}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		const size = 8
		n, taken, err := parseNotice(b, size)
		if err != nil || taken == 0 {
			return
		}
		require.LessOrEqual(t, taken, len(b))
		require.LessOrEqual(t, len(n.says.Ranks), size)
		require.LessOrEqual(t, max(len(n.says.Ended), len(n.says.For), len(n.says.Left)), size)
		require.LessOrEqual(t, len(n.append(nil)), taken, "runs that meet are one")
	})
}

// The members of a large Comm take what the gaps between them take.
func TestBytes(t *testing.T) {
	var ranks []int32
	for r := range int32(120_960) {
		if r != 7 && r != 90_000 {
			ranks = append(ranks, r)
		}
	}
	require.Equal(t, noticeHead+3*runBytes, Bytes(&agree.Notice{Kind: agree.Propose, Ranks: ranks}))
	require.Equal(t, noticeHead+4*runBytes, Bytes(&agree.Notice{Kind: agree.Decide, Ranks: ranks, Ended: []int32{7}}))
	n, _, err := parseNotice((&notice{says: agree.Notice{Kind: agree.Propose, Ranks: ranks}}).append(nil), 120_960)
	require.NoError(t, err)
	require.Equal(t, ranks, n.says.Ranks)
}
