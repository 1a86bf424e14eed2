package pack_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/data/pack"
	"github.com/goccl/goccl/train/tp"
)

// documents of random lengths; token i of document d is 1000 d + i.
func documents(n, most int) (lengths []int, doc func(int) ([]int32, error)) {
	r := rand.New(rand.NewPCG(1, uint64(most)))
	for range n {
		lengths = append(lengths, r.IntN(most+1))
	}
	return lengths, func(d int) (out []int32, err error) {
		for i := range lengths[d] {
			out = append(out, int32(1000*d+i))
		}
		return out, nil
	}
}

// bestFit is how many rows best fit needs, the longest first: a plain loop.
func bestFit(lengths []int, context int) int {
	var pieces []int
	for _, n := range lengths {
		for n--; n > 0; n -= context {
			pieces = append(pieces, min(n, context))
		}
	}
	slices.SortFunc(pieces, func(a, b int) int { return b - a })
	var room []int
	for _, n := range pieces {
		best := -1
		for i, free := range room {
			if free >= n && (best < 0 || free < room[best]) {
				best = i
			}
		}
		if best < 0 {
			room, best = append(room, context), len(room)
		}
		room[best] -= n
	}
	return len(room)
}

// Each token that has one after it is in one place, with that as its target; the rows are as many as best fit needs.
func TestPack(t *testing.T) {
	for _, tc := range []struct{ docs, most, context int }{{0, 0, 8}, {1, 1, 8}, {50, 5, 1}, {200, 40, 64}, {200, 40, 63}, {200, 300, 64}, {300, 64, 65}, {100, 20, 1000}} {
		lengths, doc := documents(tc.docs, tc.most)
		p, err := pack.New(lengths, tc.context)
		require.NoError(t, err)
		require.Equal(t, bestFit(lengths, tc.context), p.Rows(), "%+v", tc)
		seen := map[int32]int{}
		var r pack.Row
		used, places := 0, 0
		for row := range p.Rows() {
			require.NoError(t, p.Fill(row, &r, doc))
			require.Len(t, r.Tokens, tc.context)
			places += tc.context
			end := int(r.Ends[len(r.Ends)-1])
			for i, x := range r.Tokens {
				if i >= end {
					require.Equal(t, [4]int32{r.Pad, pack.Ignored, 0, pack.Padding}, [4]int32{x, r.Targets[i], r.Positions[i], r.Documents[i]})
					continue
				}
				used++
				seen[x]++
				k := r.Documents[i]
				if r.Targets[i] != x+1 || r.Ends[k]+r.Positions[i] != int32(i) || r.Ends[k+1] <= int32(i) {
					t.Fatalf("%+v, row %d: place %d has %d, target %d, position %d of document %d, ends %d", tc, row, i, x, r.Targets[i], r.Positions[i], k, r.Ends)
				}
			}
		}
		for d, n := range lengths {
			for i := range n {
				want := 1
				if i == n-1 {
					want = 0
				}
				if got := seen[int32(1000*d+i)]; got != want {
					t.Fatalf("%+v: token %d of document %d is in %d places", tc, i, d, got)
				}
			}
		}
		if places > 0 {
			require.InDelta(t, float64(used)/float64(places), p.Used(), 1e-12)
		}
	}
	require.Equal(t, tp.Ignored, pack.Ignored)
}

// A run that goes on with other numbers of ranks trains on each token once in an epoch.
func TestPackedRowsResume(t *testing.T) {
	lengths, doc := documents(500, 30)
	p, err := pack.New(lengths, 50)
	require.NoError(t, err)
	seen := map[int32]int{}
	consumed := 0
	for _, part := range []struct{ size, turns int }{{2, 20}, {5, 10}, {3, 5}, {1, p.Rows()}} {
		next := consumed
		for rank := range part.size {
			items, err := data.Sampler{N: p.Rows(), Rank: rank, Size: part.size, Seed: 1}.Epoch(7, consumed)
			require.NoError(t, err)
			turns := 0
			for at, row := range items {
				var r pack.Row
				require.NoError(t, p.Fill(row, &r, doc))
				for i, x := range r.Tokens {
					if r.Documents[i] != pack.Padding {
						seen[x]++
					}
				}
				next = at
				if turns++; turns == part.turns {
					break
				}
			}
		}
		consumed = next
	}
	want := 0
	for _, n := range lengths {
		want += max(n-1, 0)
	}
	require.Len(t, seen, want)
	for x, n := range seen {
		require.Equal(t, 1, n, x)
	}
}

// attend is causal attention with one number a token as query, key and value; sees says what a token sees.
func attend(x []int32, sees func(t, u int) bool) (y []float64) {
	for t := range x {
		sum, out := 0., 0.
		for u := range x {
			if sees(t, u) {
				w := math.Exp(math.Sin(float64(x[t])) * math.Cos(float64(x[u])))
				sum, out = sum+w, out+w*math.Sin(float64(x[u]))
			}
		}
		y = append(y, out/sum)
	}
	return y
}

// Attention with the mask of a row is attention of each document alone.
func TestSees(t *testing.T) {
	lengths, doc := documents(60, 12)
	p, err := pack.New(lengths, 40)
	require.NoError(t, err)
	var r pack.Row
	for row := range p.Rows() {
		require.NoError(t, p.Fill(row, &r, doc))
		got := attend(r.Tokens, r.Sees)
		at := 0
		for _, s := range p.Spans(row) {
			all, err := doc(int(s.Doc))
			require.NoError(t, err)
			want := attend(all[s.Lo:s.Hi], func(t, u int) bool { return u <= t })
			require.InDeltaSlice(t, want, got[at:at+len(want)], 1e-15)
			at += len(want)
		}
		for ; at < len(got); at++ {
			require.InDelta(t, math.Sin(float64(r.Pad)), got[at], 1e-15, "padding sees itself")
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	p, err := pack.New([]int{5, 6, 7, 8, 9}, 16)
	require.NoError(t, err)
	var r pack.Row
	tokens := make([]int32, 9)
	doc := func(d int) ([]int32, error) { return tokens[:5+d], nil }
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for row := range p.Rows() {
			require.NoError(t, p.Fill(row, &r, doc))
		}
	}))
}

func TestBadInput(t *testing.T) {
	for _, context := range []int{0, -1, 1<<24 + 1} {
		_, err := pack.New([]int{1}, context)
		require.EqualError(t, err, fmt.Sprintf("data/pack: rows of %d tokens; from 1 to 16777216", context))
	}
	_, err := pack.New([]int{3, -1}, 5)
	require.EqualError(t, err, "data/pack: document 1 has -1 tokens")
	_, err = pack.New([]int{math.MaxInt}, 5)
	require.ErrorContains(t, err, "data/pack: document 0 has")
	p, err := pack.New([]int{3, 4}, 5)
	require.NoError(t, err)
	var r pack.Row
	for _, row := range []int{-1, p.Rows()} {
		require.EqualError(t, p.Fill(row, &r, nil), fmt.Sprintf("data/pack: row %d of %d", row, p.Rows()))
	}
	require.EqualError(t, p.Fill(0, &r, func(int) ([]int32, error) { return make([]int32, 3), nil }),
		"data/pack: document 1 has 3 tokens, and was packed with 4 or more")
	require.ErrorIs(t, p.Fill(0, &r, func(int) ([]int32, error) { return nil, os.ErrNotExist }), os.ErrNotExist)
}
