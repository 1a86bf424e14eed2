package trace

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lane is where a slice lies.
type lane struct{ pid, tid int }

// formatted reads a file as the Trace Event Format has it, and checks what each event must have: its phase, whole numbers for its
// process and thread, a time and, for a slice, a length, both from 0 on; slices of a lane beside or within each other; a name for
// each lane. It returns the slices by lane, and the names.
func formatted(t *testing.T, text []byte) (slices_ map[lane][]event, names map[lane]string, instants []event) {
	var file struct {
		TraceEvents     []map[string]any
		DisplayTimeUnit string
	}
	require.NoError(t, json.Unmarshal(text, &file))
	require.Equal(t, "ms", file.DisplayTimeUnit)
	slices_, names = map[lane][]event{}, map[lane]string{}
	for _, e := range file.TraceEvents {
		whole := func(key string) int {
			x, ok := e[key].(float64)
			require.True(t, ok && x == float64(int(x)), "%s of %v", key, e)
			return int(x)
		}
		at := lane{whole("pid"), whole("tid")}
		require.IsType(t, "", e["name"])
		ts, ok := e["ts"].(float64)
		require.True(t, ok && ts >= 0, "%v", e)
		switch e["ph"] {
		case "M":
			args := e["args"].(map[string]any)
			switch e["name"] {
			case "process_name":
				names[lane{at.pid, 0}] = args["name"].(string)
			case "thread_name":
				names[at] = args["name"].(string)
			case "process_sort_index", "thread_sort_index":
				require.IsType(t, 0., args["sort_index"])
			default:
				t.Fatalf("%v", e)
			}
		case "X":
			dur, ok := e["dur"].(float64)
			require.True(t, ok && dur >= 0, "%v", e)
			slices_[at] = append(slices_[at], event{Name: e["name"].(string), Time: ts, Took: &dur, Args: e["args"].(map[string]any)})
		case "i":
			require.Contains(t, []any{"g", "p", "t"}, e["s"])
			instants = append(instants, event{Name: e["name"].(string), Time: ts, Rank: at.pid, Args: e["args"].(map[string]any)})
		default:
			t.Fatalf("%v", e)
		}
	}
	const rounding = 1e-3 // a nanosecond
	for at, list := range slices_ {
		require.NotEmpty(t, names[at], at)
		require.NotEmpty(t, names[lane{at.pid, 0}], at)
		var open []float64
		for _, e := range list {
			for len(open) > 0 && open[len(open)-1] <= e.Time+rounding {
				open = open[:len(open)-1]
			}
			require.True(t, len(open) == 0 || e.Time+*e.Took <= open[len(open)-1]+rounding, "%v: %v overlaps", at, e)
			open = append(open, e.Time+*e.Took)
		}
	}
	return slices_, names, instants
}

// A timeline of two hosts, one of which has its clock three seconds ahead, with a Comm for each of two streams.
func TestTimeline(t *testing.T) {
	const ms = time.Millisecond
	part := func(l *line) *line {
		p := *l
		p.Comm, p.ID, p.Size, p.Calls = "tp", "2", 2, []call{
			done(1, "Send", l.Calls[0].Start, l.Calls[0].Start+30*ms), done(2, "Send", l.Calls[0].Start+10*ms, l.Calls[0].Start+40*ms), // on two streams
			{Seq: 3, Kind: "Recv", State: "issued"},
		}
		return &p
	}
	a := at(0, "a", 1*time.Second, 0, done(1, "AllReduce", 10*time.Second, 10*time.Second+40*ms), done(2, "Barrier", 12*time.Second, 12*time.Second+5*ms))
	b := at(1, "b", 2*time.Second, 3*time.Second, done(1, "AllReduce", 10*time.Second+30*ms, 10*time.Second+40*ms), done(2, "Barrier", 12*time.Second, 12*time.Second+5*ms))
	b.Calls = append(b.Calls, call{Seq: 3, Kind: "AllReduce", Type: "float", Count: 8, Op: "sum", Root: -1, State: "running", Start: 11 * time.Second, Caller: "llm/train.go:88"})
	b.Graphs = []call{done(1, "Graph", 9*time.Second, 10*time.Second+30*ms)}
	b.Why, b.Code, b.Error = "failure", "timed out", "ccl: rank 1: timed out at rank 2"
	silent := at(2, "c", 0, 0, done(3, "Barrier", 0, 0))
	silent.Why, silent.Doing, silent.PID = "standing", "outside", a.PID
	silent.Clock = b.Clock

	var out bytes.Buffer
	require.NoError(t, picture(group([]*line{a, b, part(a), silent})).write(&out))
	found, names, instants := formatted(t, out.Bytes())
	assert.Equal(t, "rank 0 (host a, pid 7, job j)", names[lane{0, 0}])
	assert.Equal(t, "rank 2 (host c; it has written nothing)", names[lane{2, 0}])
	assert.Equal(t, "world (3 ranks)", names[lane{0, 1}])
	assert.Equal(t, "tp (2 ranks)", names[lane{0, 1 + lanesEach}])
	assert.Equal(t, "tp (2 ranks), beside it (1)", names[lane{0, 2 + lanesEach}])
	require.Len(t, found[lane{0, 1}], 2)
	require.Len(t, found[lane{0, 1 + lanesEach}], 1)
	require.Len(t, found[lane{0, 2 + lanesEach}], 1)
	var kinds []string
	for _, e := range slices.Concat(found[lane{1, 1}], found[lane{1, 2}]) {
		kinds = append(kinds, e.Name)
	}
	assert.ElementsMatch(t, []string{"AllReduce", "Barrier", "AllReduce", "Graph"}, kinds)
	// The ranks are side by side in the picture, not three seconds apart.
	assert.InDelta(t, found[lane{0, 1}][1].Time, found[lane{1, 1}][2].Time, 60e3, "%v", found)
	last := found[lane{1, 1}][len(found[lane{1, 1}])-1]
	assert.Equal(t, "AllReduce float x 8 sum", last.Args["call"])
	assert.Equal(t, "llm/train.go:88", last.Args["caller"])
	assert.Equal(t, "running", last.Args["state"])
	assert.InDelta(t, (b.Clock-11*time.Second).Seconds()*1e6, *last.Took, 1, "until this was written")
	var said []string
	for _, e := range instants {
		said = append(said, e.Name)
	}
	assert.ElementsMatch(t, []string{"timed out", "last seen: #3 Barrier"}, said)
}

// bench trace -perfetto writes the file, says what it says without, and refuses a name that it cannot write.
func TestPerfettoFlag(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(`{"goccl_trace":1,"job":"j","comm":"world","id":"1","size":1,"why":"exit","time":"2026-01-02T03:04:05Z","clock_ns":2000000,`+
		`"calls":[{"seq":1,"kind":"Barrier","root":-1,"state":"complete","start_ns":1000,"end_ns":5000}]}`+"\n"), 0o600))
	var out, errs bytes.Buffer
	file := filepath.Join(dir, "t.json")
	require.Zero(t, Command([]string{"-perfetto", file, dir}, &out, &errs), &errs)
	require.Contains(t, out.String(), "nothing went wrong")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	found, _, _ := formatted(t, text)
	require.Equal(t, 4., *found[lane{0, 1}][0].Took, "microseconds")
	require.Zero(t, found[lane{0, 1}][0].Time, "the first")
	require.NotContains(t, found[lane{0, 1}][0].Args, "time")
	require.Equal(t, 2, Command([]string{"-perfetto", filepath.Join(dir, "no", "t.json"), dir}, &out, &errs))
	require.Contains(t, errs.String(), "bench trace: -perfetto: open ")
}

// Calls that begin at one reading of the clock share what time there is up to the next one, in their order.
func TestPlaced(t *testing.T) {
	const ms = time.Millisecond
	type place struct {
		seq      uint64
		from, to time.Duration
		rough    bool
	}
	for name, tc := range map[string]struct {
		calls []call
		want  []place
	}{
		"by the clock":                {[]call{done(1, "Barrier", 0, 5*ms), done(2, "Barrier", 5*ms, 15*ms)}, []place{{1, 0, 5 * ms, false}, {2, 5 * ms, 15 * ms, false}}},
		"one":                         {[]call{done(1, "Barrier", 5*ms, 5*ms)}, []place{{1, 5 * ms, 10 * ms, true}}},
		"two, and another":            {[]call{done(1, "Barrier", 5*ms, 5*ms), done(2, "Barrier", 5*ms, 5*ms), done(3, "Barrier", 7*ms, 12*ms)}, []place{{1, 5 * ms, 6 * ms, true}, {2, 6 * ms, 7 * ms, true}, {3, 7 * ms, 12 * ms, false}}},
		"the last lasts":              {[]call{done(1, "Barrier", 5*ms, 5*ms), done(2, "Barrier", 5*ms, 9*ms), done(3, "Barrier", 9*ms, 20*ms)}, []place{{1, 5 * ms, 7 * ms, true}, {2, 7 * ms, 9 * ms, true}, {3, 9 * ms, 20 * ms, false}}},
		"a group":                     {[]call{done(1, "Send", 5*ms, 9*ms), done(2, "Recv", 5*ms, 9*ms)}, []place{{1, 5 * ms, 9 * ms, false}, {2, 5 * ms, 9 * ms, false}}},
		"a group, the last is longer": {[]call{done(1, "Send", 5*ms, 7*ms), done(2, "Recv", 5*ms, 9*ms)}, []place{{2, 5 * ms, 9 * ms, false}, {1, 5 * ms, 7 * ms, false}}},
		"none has begun":              {[]call{{Seq: 1, Kind: "Barrier", State: "issued"}}, nil},
		"short ones before a group":   {[]call{done(1, "Barrier", 5*ms, 5*ms), done(2, "Barrier", 5*ms, 5*ms), done(3, "Send", 5*ms, 8*ms), done(4, "Recv", 5*ms, 8*ms)}, []place{{1, 5 * ms, 6 * ms, true}, {2, 6 * ms, 7 * ms, true}, {3, 7 * ms, 8 * ms, true}, {4, 7 * ms, 8 * ms, true}}},
		"one runs":                    {[]call{{Seq: 1, Kind: "Barrier", State: "running", Start: 8 * ms}}, []place{{1, 8 * ms, 30 * ms, false}}},
	} {
		var got []place
		for _, s := range (&line{Calls: tc.calls, Clock: 30 * ms}).placed() {
			got = append(got, place{s.Seq, s.from, s.to, s.rough})
		}
		require.Equal(t, tc.want, got, name)
	}
}
