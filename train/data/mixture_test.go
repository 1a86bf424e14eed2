package data_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/data"
)

const period = 1 << 16 // after which shares are exact

func TestMixtureShares(t *testing.T) {
	for _, tc := range []struct{ weights, want []float64 }{
		{[]float64{1}, []float64{period}},
		{[]float64{1, 1}, []float64{period / 2, period / 2}},
		{[]float64{1, 1, 1}, []float64{21846, 21845, 21845}},
		{[]float64{.7, .2, .1}, []float64{45875, 13107, 6554}},
		{[]float64{5, 0, 3}, []float64{40960, 0, 24576}},
		{[]float64{1e-12, 1e-12, 1}, []float64{1, 1, period - 2}},
		{[]float64{1e300, 1e300}, []float64{period / 2, period / 2}},
	} {
		var m data.Mixture
		for _, w := range tc.weights {
			m.Sources = append(m.Sources, data.Source{N: 3, Weight: w})
		}
		var got []float64
		for _, n := range m.Shares() {
			got = append(got, float64(n))
		}
		require.Equal(t, tc.want, got)
	}
	m := data.Mixture{Sources: make([]data.Source, 4096)}
	for i := range m.Sources {
		m.Sources[i] = data.Source{N: 1, Weight: 1e-9}
	}
	m.Sources[7].Weight = 1
	require.Equal(t, period-4095, m.Shares()[7])
}

// Of each source the items come as a Sampler of it yields them, epoch after epoch; in each period each source has its share, and
// within it the sources come at random.
func TestMixture(t *testing.T) {
	m := data.Mixture{Sources: []data.Source{{N: 1000, Weight: 6}, {N: 7, Weight: 1}, {N: 100_000, Weight: 3}, {N: 0, Weight: 0}}, Seed: 4}
	draws, err := m.From(0)
	require.NoError(t, err)
	counts := make([]int, 4)
	each := make([][]data.Draw, 4)
	early := 0
	last := 0
	for consumed, d := range draws {
		if last++; consumed != last {
			t.Fatalf("%d consumed after %d draws", consumed, last)
		}
		counts[d.Source]++
		each[d.Source] = append(each[d.Source], d)
		if consumed == 1000 {
			early = counts[0]
		}
		if consumed%period == 0 {
			require.Equal(t, m.Shares(), counts)
			clear(counts)
		}
		if consumed == 2*period {
			break
		}
	}
	require.InDelta(t, 600, early, 6*math.Sqrt(1000*.6*.4))
	for source, got := range each[:3] {
		at := 0
		for e := 0; at < len(got); e++ {
			items, err := m.Sampler(source).Epoch(e, 0)
			require.NoError(t, err)
			for _, item := range items {
				if at == len(got) {
					break
				}
				if want := (data.Draw{Source: source, Item: item, Epoch: e}); got[at] != want {
					t.Fatalf("draw %d of source %d is %+v, not %+v", at, source, got[at], want)
				}
				at++
			}
		}
	}
}

// A run goes on from any position, on any number of ranks, with what one rank would draw.
func TestMixtureResumes(t *testing.T) {
	mix := func(rank, size int) data.Mixture {
		return data.Mixture{Sources: []data.Source{{N: 10, Weight: 1}, {N: 300, Weight: 2}}, Rank: rank, Size: size, Seed: 9}
	}
	const begin = period - 500 // over the end of a period
	var want []data.Draw
	one, err := mix(0, 0).From(begin)
	require.NoError(t, err)
	for _, d := range one {
		if want = append(want, d); len(want) == 1000 {
			break
		}
	}
	got := make([]data.Draw, 0, 1000)
	for _, part := range []struct{ size, turns int }{{1, 10}, {4, 50}, {3, 97}, {7, 50}, {2, 12}} {
		at := len(got)
		got = got[:at+part.size*part.turns]
		for rank := range part.size {
			draws, err := mix(rank, part.size).From(begin + at)
			require.NoError(t, err)
			turn := 0
			for consumed, d := range draws {
				require.Equal(t, begin+at+(turn+1)*part.size, consumed)
				got[at+turn*part.size+rank] = d
				if turn++; turn == part.turns {
					break
				}
			}
		}
	}
	require.Equal(t, want[:len(got)], got)
	// As far as positions go.
	last, err := mix(1, 3).From(math.MaxInt - 7)
	require.NoError(t, err)
	turns := 0
	for range last {
		turns++
	}
	require.Equal(t, 2, turns)
}

func TestMixtureCheck(t *testing.T) {
	good := data.Source{N: 1, Weight: 1}
	for want, m := range map[string]data.Mixture{
		"data: a Mixture whose weights are 0 together":           {},
		"data: source 1 of a Mixture has 0 items and weight 1":   {Sources: []data.Source{good, {Weight: 1}}},
		"data: source 0 of a Mixture has 5 items and weight NaN": {Sources: []data.Source{{N: 5, Weight: math.NaN()}}},
		"data: source 0 of a Mixture has 5 items and weight -1":  {Sources: []data.Source{{N: 5, Weight: -1}}},
		"data: source 0 of a Mixture has -1 items and weight 0":  {Sources: []data.Source{{N: -1}, good}},
		"data: a Mixture whose weights are +Inf together":        {Sources: []data.Source{{N: 1, Weight: 1e308}, {N: 1, Weight: 1e308}}},
		"data: a Mixture for rank 2 of 2":                        {Sources: []data.Source{good}, Rank: 2, Size: 2},
		"data: a Mixture for rank 0 of -1":                       {Sources: []data.Source{good}, Size: -1},
		"data: a Mixture of 5000 sources; at most 4096":          {Sources: make([]data.Source, 5000)},
	} {
		require.EqualError(t, m.Check(), want)
		_, err := m.From(0)
		require.EqualError(t, err, want)
		require.Nil(t, m.Shares())
	}
	_, err := data.Mixture{Sources: []data.Source{good}}.From(-1)
	require.EqualError(t, err, "data: a Mixture of which -1 items are consumed")
}
