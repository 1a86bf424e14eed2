package compare

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/browser"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/stat"
)

// Each half of a line has old, new, their ratio and its interval; of twins nothing can be told, of twice the time everything.
func TestLines(t *testing.T) {
	for _, tc := range []struct {
		old, new []*report.File
		verdict  string
		ratio    float64
	}{
		{several(5, 1, 1, .02), several(5, 20, 1, .02), "cannot tell", 1},
		{several(5, 1, 1, .02), several(5, 20, 2, .02), "slower", 2},
		{several(5, 1, 2, .02), several(5, 20, 1, .02), "faster", .5},
		{several(1, 1, 1, 0), several(1, 20, 1.2, 0), "cannot tell", 1.2},
	} {
		all := lines(newSide(tc.old), newSide(tc.new), .05)
		require.Len(t, all, 16, "eight sizes, out of place and in place")
		for _, l := range all {
			require.Equal(t, tc.verdict, l.Verdict(), "%+v", l)
			require.InEpsilon(t, tc.ratio, l.New/l.Old, .25)
		}
		var b bytes.Buffer
		table(&b, all)
		require.Equal(t, 2+16, strings.Count(b.String(), "\n"))
		require.Regexp(t, regexp.MustCompile(`(?m)^# allreduce float sum\n# +size +old \(us\) +new \(us\) +ratio +95 % interval$`), b.String())
		require.Len(t, regexp.MustCompile(`(?m)^ +[\d.]+ [KM]?i?B  (out of place|in place    )( +[\d.e+-]+){3} +\S+ to \S+  `+tc.verdict+`$`).FindAllString(b.String(), -1), 16, b.String())
	}
}

// The bar of an interval: 1 in the middle, 8 at the right end, and what lies beyond there too.
func TestBar(t *testing.T) {
	for _, tc := range []struct {
		low, at, high    float64
		left, mid, right string
	}{
		{1, 1, 1, "80.0", "80.0", "80.0"},
		{.125, 1, 8, "0.0", "80.0", "160.0"},
		{1. / 64, 2, 1e9, "0.0", "106.7", "160.0"},
		{0, 1, math.Inf(1), "0.0", "80.0", "160.0"},
		{math.NaN(), 1, 1, "80.0", "80.0", "80.0"},
	} {
		l := lineChange{change: change{shown: stat.Interval{Low: math.Log(tc.low), Estimate: math.Log(tc.at), High: math.Log(tc.high)}}}
		b := l.Bar()
		require.Equal(t, []string{tc.left, tc.mid, tc.right}, []string{b.Low, b.At, b.High}, "%+v", tc)
	}
}

// -html writes what was said and the table as a page that needs nothing; a file that cannot be written is refused.
func TestComparePage(t *testing.T) {
	dir := t.TempDir()
	save := func(name string, f *report.File) string {
		path := filepath.Join(dir, name)
		require.NoError(t, f.Save("J", path, (*report.File).JSON))
		return path
	}
	old, new, page := save("<old>.json", stored(1, 1, 0)), save("new.json", stored(2, 8, 0)), filepath.Join(dir, "c.html")
	var out, errs bytes.Buffer
	none := func(a, b map[string]string) []string { return nil }
	require.Equal(t, 3, Stored([]string{"-html", page, old, new}, &out, &errs, none), &errs)
	require.Contains(t, out.String(), "# allreduce float sum\n")
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	require.NotRegexp(t, `(?i)(https?:|src=|href=|<script|<old>)`, string(b))
	require.Equal(t, 16, strings.Count(string(b), `<tr class="bad">`))
	require.Contains(t, string(b), "<li>allreduce up to 4 KiB: slower: ")
	require.Equal(t, 16, strings.Count(string(b), `<path class="interval" d="M`), "a picture of each interval")

	for _, wide := range []int{1100, 500} {
		for _, dark := range []bool{false, true} {
			if testing.Short() && dark != (wide == 500) { // a browser for each takes a second
				continue
			}
			t.Run(fmt.Sprintf("%d wide, dark %v", wide, dark), func(t *testing.T) { require.Empty(t, browser.Look(t, string(b), wide, dark)) })
		}
	}

	out.Reset()
	require.Equal(t, 2, Stored([]string{"-html", filepath.Join(dir, "no", "c.html"), old, new}, &out, &errs, none))
	require.Empty(t, out.String())
	require.Contains(t, errs.String(), "it cannot be written")
}
