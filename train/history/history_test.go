package history_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/history"
)

func collect(h *history.History, name string) (steps []int, stats []history.Stat) {
	for s, x := range h.Series(name) {
		steps, stats = append(steps, s), append(stats, x)
	}
	return
}

func newHistory(t testing.TB, c *ccl.Comm, o *history.Options) *history.History {
	h, err := history.New(t.Context(), c, o)
	require.NoError(t, err)
	return h
}

func TestLog(t *testing.T) {
	for _, opts := range [][]ccltest.Option{nil, {ccltest.Processes(2)}, {ccltest.Hosts(2)}} {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			var text, lines bytes.Buffer
			h := newHistory(t, c, &history.Options{Out: &text, JSON: &lines})
			r := float64(c.Rank())
			const big = 1e9
			for step := range 3 {
				require.NoError(t, h.Log(t.Context(), step*10, history.Metric{"loss", r + float64(step)}, history.Metric{"same", .1}, history.Metric{"big", big + r/1000}))
			}
			steps, stats := collect(h, "loss")
			require.Equal(t, []int{0, 10, 20}, steps)
			for i, s := range stats {
				require.Equal(t, float64(i), s.Min)
				require.Equal(t, float64(i)+2, s.Max)
				require.InDelta(t, float64(i)+1, s.Mean, 1e-12)
				require.InDelta(t, math.Sqrt(2./3), s.Std, 1e-12)
			}
			_, stats = collect(h, "same")
			require.Equal(t, history.Stat{Mean: .1, Min: .1, Max: .1}, stats[2])
			_, stats = collect(h, "big") // a deviation of 1e-12 of the mean
			require.InEpsilon(t, math.Sqrt(2./3)/1000, stats[2].Std, 1e-3)
			require.Equal(t, []string{"loss", "same", "big"}, h.Names())
			_, stats = collect(h, "none")
			require.Empty(t, stats)
			if c.Rank() != 0 {
				require.Empty(t, text.String()+lines.String())
				return
			}
			require.Equal(t, "step=0 loss=1 same=0.1 big=1e+09\nstep=10 loss=2 same=0.1 big=1e+09\nstep=20 loss=3 same=0.1 big=1e+09\n", text.String())
			back, err := history.Read(&lines)
			require.NoError(t, err)
			require.Equal(t, h.Names(), back.Names())
			for _, name := range h.Names() {
				s1, x1 := collect(h, name)
				s2, x2 := collect(back, name)
				require.Equal(t, s1, s2)
				require.Equal(t, x1, x2)
			}
		}, opts...)
	}
}

func TestNotFinite(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		var lines bytes.Buffer
		h := newHistory(t, c, &history.Options{JSON: &lines})
		values := []float64{1, math.NaN(), 2, math.Inf(1), 3, math.Inf(-1), 4}
		for step, v := range values {
			if c.Rank() == 1 {
				v = 1
			}
			require.NoError(t, h.Log(t.Context(), step, history.Metric{"x", v}))
		}
		_, stats := collect(h, "x")
		for _, v := range []float64{stats[1].Mean, stats[1].Min, stats[1].Max, stats[1].Std} {
			require.True(t, math.IsNaN(v))
		}
		require.Equal(t, math.Inf(1), stats[3].Mean)
		require.Equal(t, math.Inf(-1), stats[5].Min)
		require.Equal(t, history.Stat{Mean: 2.5, Min: 1, Max: 4, Std: 1.5}, stats[6])
		if c.Rank() != 0 {
			return
		}
		back, err := history.Read(&lines)
		require.NoError(t, err)
		_, again := collect(back, "x")
		require.Equal(t, fmt.Sprint(stats), fmt.Sprint(again))
		var svg bytes.Buffer
		require.NoError(t, back.SVG(&svg))
		require.NotContains(t, svg.String(), "NaN")
		require.NotContains(t, svg.String(), "Inf")
	})
}

// A Log is two all-reduces of one group, however many metrics there are.
func TestTwoAllReduces(t *testing.T) {
	for _, n := range []int{1, 20} {
		var calls atomic.Int32
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			h := newHistory(t, c, nil)
			ccltest.Barrier(t, c)
			before := calls.Load()
			ccltest.Barrier(t, c)
			var m []history.Metric
			for i := range n {
				m = append(m, history.Metric{fmt.Sprint("m", i), 1})
			}
			require.NoError(t, h.Log(t.Context(), 0, m...))
			ccltest.Barrier(t, c)
			require.Equal(t, int32(2*2), calls.Load()-before)
			ccltest.Barrier(t, c)
		}, ccltest.With(ccl.Options{OnCall: func(o ccl.Observation) {
			if o.Call.Kind == ccl.KindAllReduce {
				calls.Add(1)
			}
		}}))
	}
}

// A Log whose context ends leaves its call running, on memory that the next Log does not use.
func TestLogGivesUp(t *testing.T) {
	gaveUp := make(chan struct{})
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		h := newHistory(t, c, nil)
		require.NoError(t, h.Log(t.Context(), 0, history.Metric{"x", 1}))
		ccltest.Barrier(t, c)
		if c.Rank() == 0 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, h.Log(ctx, 1, history.Metric{"x", 2}), context.DeadlineExceeded)
			close(gaveUp)
			require.NoError(t, h.Log(t.Context(), 2, history.Metric{"x", 1000}))
			return
		}
		<-gaveUp
		require.NoError(t, h.Log(t.Context(), 1, history.Metric{"x", 4}))
		require.NoError(t, h.Log(t.Context(), 2, history.Metric{"x", 1000}))
		_, stats := collect(h, "x")
		require.Equal(t, history.Stat{Mean: 3, Min: 2, Max: 4, Std: 1}, stats[1])
	})
}

func TestMaxRanks(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		h := newHistory(t, c, &history.Options{MaxRanks: 2})
		require.NoError(t, h.Log(t.Context(), 0, history.Metric{"x", float64(c.Rank())}))
		_, stats := collect(h, "x")
		v := float64(c.Rank())
		require.Equal(t, []history.Stat{{Mean: v, Min: v, Max: v}}, stats)
	})
}

// A step that comes again replaces itself; Rewind forgets what was after it.
func TestResume(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		h := newHistory(t, c, nil)
		for i, step := range []int{0, 10, 20, 30, 20, 40, 5} {
			require.NoError(t, h.Log(t.Context(), step, history.Metric{"x", float64(i)}))
		}
		steps, stats := collect(h, "x")
		require.Equal(t, []int{0, 5, 10, 20, 30, 40}, steps)
		require.Equal(t, 4., stats[3].Mean)
		h.Rewind(20)
		steps, _ = collect(h, "x")
		require.Equal(t, []int{0, 5, 10, 20}, steps)
		h.Rewind(-1)
		steps, _ = collect(h, "x")
		require.Empty(t, steps)
		require.NoError(t, h.Log(t.Context(), 7, history.Metric{"x", 1}))
	})
}

// A metric that has lost all of its steps is no metric any more, and those that are left can be drawn.
func TestRewindToBeforeAMetric(t *testing.T) {
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		h := newHistory(t, c, nil)
		require.NoError(t, h.Log(t.Context(), 1, history.Metric{"loss", 3}))
		require.NoError(t, h.Log(t.Context(), 2, history.Metric{"loss", 2}, history.Metric{"validation", 1}))
		h.Rewind(1)
		require.Equal(t, []string{"loss"}, h.Names())
		require.NoError(t, h.SVG(io.Discard))
		require.NoError(t, h.Log(t.Context(), 2, history.Metric{"validation", 5}))
		require.Equal(t, []string{"loss", "validation"}, h.Names())
		require.NoError(t, h.SVG(io.Discard))
	})
}

// The squares of large values cannot be summed, nor can the values themselves.
func TestLargeValues(t *testing.T) {
	const most = math.MaxFloat64
	ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
		h := newHistory(t, c, nil)
		for i, tc := range []struct {
			of        [4]float64
			mean, std float64
		}{
			{[4]float64{1e300, 1e300, 1e300, 1e300}, 1e300, 0},
			{[4]float64{1e300, 3e300, 1e300, 3e300}, 2e300, 1e300},
			{[4]float64{-1e200, 1e200, -1e200, 1e200}, 0, 1e200},
			{[4]float64{-most, most, -most, most}, 0, most},
			{[4]float64{most, most, 0, 0}, most / 2, most / 2},
		} {
			require.NoError(t, h.Log(t.Context(), i, history.Metric{"y", 1}, history.Metric{"x", tc.of[c.Rank()]}))
			_, stats := collect(h, "x")
			s := stats[i]
			require.InDelta(t, 1, (s.Mean+1e290)/(tc.mean+1e290), 1e-12, "%v: %+v", tc, s)
			require.InDelta(t, 1, (s.Std+1e290)/(tc.std+1e290), 1e-12, "%v: %+v", tc, s)
			_, ones := collect(h, "y")
			require.Equal(t, history.Stat{Mean: 1, Min: 1, Max: 1}, ones[i])
		}
	})
}

func TestLogErrors(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		r := c.Rank()
		_, err := history.New(t.Context(), c, &history.Options{MaxRanks: -r})
		require.EqualError(t, err, "history: rank 1: MaxRanks is -1")
		h := newHistory(t, c, nil)
		a, b := history.Metric{"a", 1}, history.Metric{"b", 2}
		second := b
		if r == 2 {
			second.Name = "c"
		}
		require.EqualError(t, h.Log(t.Context(), 1, a, second), `history: ranks differ: rank 0 has "b", rank 2 has "c"`)
		require.EqualError(t, h.Log(t.Context(), 1+r/2, a, b), "history: ranks differ: rank 0 has step 1, rank 2 has step 2")
		for _, m := range [][]history.Metric{{a, a}, {{"", 1}}, {{"step", 1}}} {
			require.ErrorContains(t, h.Log(t.Context(), 1, m...), "a name must be unique, not empty and not \"step\"")
		}
		require.Empty(t, h.Names())
		require.NoError(t, h.Log(t.Context(), 1, a, b))
		// Another number of metrics.
		d := ccltest.Split(t, c, 0, r)
		m := []history.Metric{a, b}
		err = newHistory(t, d, nil).Log(t.Context(), 2, m[:2-r/2]...)
		d.Close()
		require.ErrorIs(t, err, ccl.ErrMismatch)
	})
}

// full is a writer that takes n lines.
type full struct{ n int }

func (f *full) Write(b []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(b), nil
}

func TestWriteFails(t *testing.T) {
	for _, tc := range []struct {
		o    *history.Options
		says string
	}{{&history.Options{Out: &full{1}}, ""}, {&history.Options{JSON: &full{1}}, ""}, {&history.Options{Events: &full{2}}, "events: "}} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			h := newHistory(t, c, tc.o)
			m := history.Metric{"x", 1}
			for step := range 2 {
				require.NoError(t, h.Log(t.Context(), step, m))
			}
			want := "history: step 1 could not be written: " + tc.says + "no space left on device"
			if c.Rank() == 0 {
				require.EqualError(t, h.Err(), want)
			} else {
				require.NoError(t, h.Err())
			}
			require.ErrorContains(t, h.Log(t.Context(), 2, m), "rank 0: "+want)
		})
	}
}

func TestReadErrors(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"[]\n", "history: line 1: not an object"},
		{"\n{\"step\":1}\n{}\n", "history: line 3: no step"},
		{"{\"step\":1,\"x\":3}\n", "history: line 1: \"x\": json"},
		{"{\"step\":1,\"x\":null}\n", "history: line 1: \"x\" has no values"},
		{"{\"step\":1.5}\n", "history: line 1: \"step\": json"},
		{"{\"step\":1,\"x\":{\"mean\":\"x\"}}\n", "history: line 1: \"x\": json"},
		{"{\"step\":1}}\n", "history: line 1: \"}\" behind the object"},
		{"{\"step\":1} {\"x\":{}}\n", "history: line 1: \"{\\\"x\\\":{}}\" behind the object"},
		{"garbage{\"step\":1}\n", "history: line 1: not an object"},
		{"{\"step\":1,]\n", "history: line 1: "},
	} {
		_, err := history.Read(strings.NewReader(tc.text))
		require.ErrorContains(t, err, tc.want)
	}
	_, err := history.Read(io.MultiReader(strings.NewReader("{\"step\":1}\n"), iotestErr{}))
	require.EqualError(t, err, "history: line 2: broken")
	h, err := history.Read(strings.NewReader(`{"step":1,"x":{"mean":1}}` + "\n" + `{"step":2,"x":{"me`))
	require.NoError(t, err)
	steps, _ := collect(h, "x")
	require.Equal(t, []int{1}, steps)
}

type iotestErr struct{}

func (iotestErr) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestSVG(t *testing.T) {
	var text strings.Builder
	for step := range 5000 {
		fmt.Fprintf(&text, `{"step":%d,"lo<ss":{"mean":%g,"min":%g,"max":%g},"one":{"mean":1,"min":1,"max":1}}`+"\n",
			step, 5/math.Sqrt(float64(step+1)), 4/math.Sqrt(float64(step+1)), 6/math.Sqrt(float64(step+1)))
	}
	h, err := history.Read(strings.NewReader(text.String()))
	require.NoError(t, err)
	var all, one bytes.Buffer
	require.NoError(t, h.SVG(&all))
	require.NoError(t, h.SVG(&one, "one"))
	require.Less(t, all.Len(), 100_000) // not 5,000 points
	for _, svg := range []*bytes.Buffer{&all, &one} {
		d := xml.NewDecoder(bytes.NewReader(svg.Bytes()))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else {
				require.NoError(t, err)
			}
		}
	}
	require.Contains(t, all.String(), "lo&lt;ss")
	require.NotContains(t, one.String(), "lo&lt;ss")
	require.EqualError(t, h.SVG(&one, "two"), `history: SVG: no such metric: "two"; there are ["lo<ss" "one"]`)
	require.ErrorContains(t, h.SVG(&full{}), "history: SVG: no space left")
	empty, err := history.Read(strings.NewReader(""))
	require.NoError(t, err)
	one.Reset()
	require.NoError(t, empty.SVG(&one))
	require.Contains(t, one.String(), `viewBox="0 0 800 260"`, "an empty plot is one that can be seen")
	// A single step, and values as far apart as can be.
	h, err = history.Read(strings.NewReader(`{"step":1,"x":{"mean":0,"min":-1.7e308,"max":1.7e308}}` + "\n"))
	require.NoError(t, err)
	one.Reset()
	require.NoError(t, h.SVG(&one))
	require.NotContains(t, one.String(), "NaN")
	require.NotContains(t, one.String(), "Inf")
}

// Whatever is read is read back equal, and can be plotted.
func FuzzRead(f *testing.F) {
	f.Add([]byte("{\"step\":1,\"x\":{\"mean\":1,\"min\":\"NaN\",\"max\":2e308,\"std\":0}}\n{\"step\":0,\"y\":{}}\n"))
	f.Add([]byte("{\"step\":-5,\"x\":{\"mean\":1e300}}\n{\"step\":9223372036854775807,\"x\":{\"mean\":\"-Inf\"}}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := history.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, name := range h.Names() {
			last := math.MinInt
			for step := range h.Series(name) {
				if step <= last && last != math.MinInt {
					t.Fatal("steps out of order")
				}
				last = step
			}
		}
		if err := h.SVG(io.Discard); err != nil && len(h.Names()) > 0 {
			t.Fatal(err)
		}
	})
}

func TestFlops(t *testing.T) {
	require.Equal(t, 6*85e6+12*12*768*1024., history.FlopsPerToken(85e6, 12, 768, 1024))
	require.InDelta(t, 46.3, history.MFU(926851, 1e9, 2.0018e15), .01)
}
