package compare

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/report"
)

// stored is a run as a file: factor times slower, with the level of its launch.
func stored(seed uint64, factor, spread float64) *report.File {
	r := rand.New(rand.NewPCG(seed, 3))
	level := factor * math.Exp(spread*r.NormFloat64())
	f := &report.File{Version: 3, Fingerprint: map[string]string{"cpu": "A"}}
	for _, size := range []int{8, 64, 512, 4096, 1 << 15, 1 << 18, 1 << 20, 1 << 23} {
		us := (2 + float64(size)/1e3) * level * math.Exp(0.05*r.NormFloat64())
		f.Results = append(f.Results, report.Row{Op: "allreduce", Size: size, Type: "float", Redop: "sum", Root: -1,
			OutOfPlace: report.NewResult(size, us, 1), InPlace: report.NewResult(size, us, 1)})
	}
	return f
}

func several(n int, seed uint64, factor, spread float64) (files []*report.File) {
	for i := range n {
		files = append(files, stored(seed+uint64(i), factor, spread))
	}
	return files
}

func TestStored(t *testing.T) {
	for _, tc := range []struct {
		name           string
		old, new       []*report.File
		slower, silent bool
		contains       string
	}{
		{"twins", several(1, 1, 1, 0.1), several(1, 2, 1, 0.1), false, true, "cannot tell; the smallest change that 1 run against 1 run can detect is "},
		{"twice as slow", several(1, 1, 1, 0), several(1, 2, 2, 0), true, false, "slower: time +10"},
		{"twice as fast", several(1, 1, 2, 0), several(1, 2, 1, 0), false, false, "faster: time -5"},
		{"five twins", several(5, 1, 1, 0.05), several(5, 20, 1, 0.05), false, true, "5 runs against 5 runs"},
		{"five, a fifth slower", several(5, 1, 1, 0.02), several(5, 20, 1.2, 0.02), true, false, "slower: time +"},
		{"within the threshold", several(5, 1, 1, 0), several(5, 20, 1.04, 0), false, true, "; the smallest change that 5 runs against 5 runs can detect is "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b bytes.Buffer
			o, err := write(&b, newSide(tc.old), newSide(tc.new), 0.05, []string{"cpu: A -> B"})
			require.NoError(t, err)
			require.Equal(t, tc.slower, o.worse, b.String())
			require.Equal(t, tc.silent, strings.HasPrefix(b.String(), "no change; ") || strings.HasPrefix(b.String(), "cannot tell; "), b.String())
			require.Equal(t, !tc.silent, strings.Contains(b.String(), "differs: cpu: A -> B"), b.String())
			require.Contains(t, b.String(), tc.contains)
		})
	}
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	save := func(name string, f *report.File) string {
		path := filepath.Join(dir, name)
		require.NoError(t, f.Save("J", path, (*report.File).JSON))
		return path
	}
	a, b, twice := save("a1.json", stored(1, 1, 0)), save("a2.json", stored(2, 1, 0)), save("twice.json", stored(3, 2, 0))
	other := stored(4, 1, 0)
	for i := range other.Results {
		other.Results[i].Op = "broadcast"
	}
	strange := save("strange.json", other)
	copied, linked := save("copied.json", stored(1, 1, 0)), filepath.Join(dir, "linked.json")
	require.NoError(t, os.Symlink(a, linked))
	busy := stored(1, 1, 0)
	busy.Goccl, busy.Schema, busy.Busy = "x", report.Schema, "busy: the process of rank 0 on vm waits"
	laden := save("busy.json", busy)
	wrong := stored(5, 1, 0)
	wrong.OutOfBounds.Count = 12
	off := save("wrong.json", wrong)
	empty := filepath.Join(dir, "empty.json")
	require.NoError(t, os.WriteFile(empty, []byte(`{"version":3}`), 0o666))
	for _, tc := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{a, b}, 0, "cannot tell; the smallest change that 1 run against 1 run can detect is "},
		{[]string{laden, b}, 0, laden + ", run 1: busy: the process of rank 0 on vm waits"},
		{[]string{"-strict", a, b}, 4, "cannot tell; "},
		{[]string{"-strict", "-threshold", "1000", a, b}, 0, "no change; "},
		{[]string{"-strict", a, twice}, 3, "slower"},
		{[]string{a, twice}, 3, "slower"},
		{[]string{filepath.Join(dir, "a*.json"), twice}, 3, "slower"},
		{[]string{"-threshold", "200", a, twice}, 0, "slower"},
		{[]string{a + "," + a, twice}, 3, a + " and " + a + " are the same run: it counts once"},
		{[]string{a + "," + linked, b}, 0, "that 1 run against 1 run can detect"},
		{[]string{copied + "," + filepath.Join(dir, "a*.json"), twice}, 3, copied + " and " + a + " are the same run: it counts once"},
		{[]string{a, a}, 2, a + " and " + a + " are the same run, on both sides: a run is either old or new; leave one of them out"},
		{[]string{a + "," + b, copied}, 2, "are the same run, on both sides"},
		{[]string{a, twice, "-threshold=200"}, 0, "slower"},
		{[]string{a}, 2, "it compares two sides, old and new: bench compare old.json new.json"},
		{[]string{a, b, twice}, 2, "3 files are given: join those of a side by commas, or quote their pattern: bench compare 'old*.json' 'new*.json'"},
		{[]string{"-treshold", "2", a, b}, 2, "-treshold: no such flag; did you mean -threshold?"},
		{[]string{a, filepath.Join(dir, "none.json")}, 2, "cannot be read"},
		{[]string{a, strange}, 1, "no line in common"},
		{[]string{a, empty}, 2, "no results"},
		{[]string{a, off}, 2, off + " has 12 wrong values: what is wrong may be fast"},
		{[]string{"-h"}, 0, "-threshold PERCENT"},
	} {
		var out, errs bytes.Buffer
		status := Stored(tc.args, &out, &errs, func(old, new map[string]string) []string { return nil })
		require.Equal(t, tc.status, status, "%v: %s%s", tc.args, &out, &errs)
		require.Contains(t, out.String()+errs.String(), tc.want)
	}
}

func TestABRefuses(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "it compares two programs"},
		{[]string{"-rounds", "3", "-", "-"}, "at least 10 are needed"},
		{[]string{"-env", "A", "-", "-"}, "NAME=VALUE"},
		{[]string{"-", "/no/such/program"}, "no such program"},
		{[]string{"-", "-op allredcue"}, "did you mean allreduce?"},
		{[]string{"-round", "30", "-", "-"}, "did you mean -rounds?"},
		{[]string{"-", "-", "-op", "allreduce"}, "bench ab: -op: a flag of the benchmark comes after --: bench ab OLD NEW -- -op allreduce\n"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, AB(t.Context(), func() {}, tc.args, &out, &errs), tc.args)
		require.Contains(t, errs.String(), tc.want)
	}
	var out, errs bytes.Buffer
	require.Zero(t, AB(t.Context(), func() {}, []string{"-h"}, &out, &errs))
	require.Contains(t, out.String(), "-env NAME=VALUE")
}

func TestPercent(t *testing.T) {
	require.Equal(t, "+10.0 %", percent(math.Log(1.1)))
	require.Equal(t, "-50.0 %", percent(math.Log(0.5)))
	require.Equal(t, "0.0 %", percent(0.0001))
	require.Equal(t, "any slowdown", percent(math.Inf(1)))
	require.Equal(t, "any speed-up", percent(math.Inf(-1)))
}

// Files of anybody's may say anything.
func FuzzFiles(f *testing.F) {
	f.Add([]byte(`{"version":3,"results":[{"op":"allreduce","size":8,"out_of_place":{"time":9}}]}`), []byte(`{"version":2,"results":[{"op":"allreduce","size":8,"out_of_place":{"time":1e-300}}]}`))
	const esc = `\u001b]0;x\u0007`
	f.Add([]byte(`{"version":3,"config":{"engine":"`+esc+`","memory":"`+esc+`","transport":"`+esc+`"},"results":[{"op":"`+esc+`","type":"`+esc+`","size":8,"algorithm":"`+esc+`","out_of_place":{"time":9}}]}`),
		[]byte(`{"version":3,"config":{"engine":"b"},"results":[{"op":"`+esc+`","type":"`+esc+`","size":8,"out_of_place":{"time":8}}]}`))
	f.Add([]byte(`{"version":3,"results":[{},{"size":-1,"out_of_place":{"time":-9}}]}`), []byte(`{"version":3,"results":[{"in_place_per_iter":{"p50_us":7}}]}`))
	f.Fuzz(func(t *testing.T, old, new []byte) {
		a, err1 := report.Parse(old)
		b, err2 := report.Parse(new)
		if err1 != nil || err2 != nil {
			return
		}
		var out strings.Builder
		_, _ = write(&out, newSide([]*report.File{a}), newSide([]*report.File{b}), 0.05, nil)
		_, _ = write(&out, newSide([]*report.File{a, a}), newSide([]*report.File{b, a}), 0.05, nil)
		if strings.ContainsFunc(strings.ReplaceAll(out.String(), "\n", ""), unicode.IsControl) {
			t.Fatalf("%q", out.String())
		}
	})
}
