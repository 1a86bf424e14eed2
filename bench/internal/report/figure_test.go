package report

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each figure is a file of its own that needs nothing else, with title, axis titles and their units, legend and caption.
func TestFigures(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	f := sampleFile(3)
	f.Config.Ceiling.Bandwidth = 12
	require.NoError(t, f.SaveFigures("svg", dir, nil))
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, names, 3)
	for name, wanted := range map[string][]string{
		"allreduce-float-sum-busbw.svg": {"Bus bandwidth of allreduce float sum", "bus bandwidth (GB/s)", "size of the data (bytes)", ">out of place<", ">in place<", ">ceiling<", "Bus bandwidth by size. Dashed, the ceiling: 12 GB/s, found out."},
		"allreduce-float-sum-time.svg":  {"Time of allreduce float sum", "time of a call (us)", "size of the data (bytes)", ">99th percentile, out of place<", "both axes logarithmic"},
		"allreduce-float-sum-ranks.svg": {"Time of each rank by iteration", ">rank<", ">2<", ">iteration 0<", "the stronger, the longer"},
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		svg := string(b)
		for _, w := range wanted {
			require.Contains(t, svg, w, name)
		}
		require.NotRegexp(t, `(?i)(src=|href=|url\(|@import|<script|NaN)`, svg)
		require.Equal(t, 1, strings.Count(svg, "http"), "the name of the language alone")
		require.Equal(t, 1, strings.Count(svg, "<svg "))
		wellFormed(t, svg)
		// Nothing is written beside the paper.
		var wide, high float64
		_, err = fmt.Sscanf(svg[strings.Index(svg, " width="):], ` width="%f" height="%f"`, &wide, &high)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`<text x="([\d.]+)" y="([\d.]+)"`).FindAllStringSubmatch(svg, -1) {
			var x, y float64
			fmt.Sscan(m[1]+" "+m[2], &x, &y)
			require.LessOrEqual(t, x, wide)
			require.LessOrEqual(t, y, high)
		}
	}
}

// The page saves the very figure that -svg writes.
func TestPageSavesFigures(t *testing.T) {
	f := sampleFile(2)
	var b strings.Builder
	require.NoError(t, f.HTML(&b))
	saved := regexp.MustCompile(`download="([^"]*)" href="data:image/svg\+xml;base64,([^"]*)"`).FindAllStringSubmatch(b.String(), -1)
	figures := f.figures()
	require.Len(t, saved, len(figures))
	for i, m := range saved {
		text, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(m[2], "&#43;", "+"))
		require.NoError(t, err)
		file, _ := figures[i].File()
		require.Equal(t, file, string(text))
		require.Equal(t, figures[i].name+".svg", m[1])
	}
}

// What goes wrong while a figure is drawn or written names the flag and the directory.
func TestFiguresFail(t *testing.T) {
	f, dir := sampleFile(2), t.TempDir()
	plain := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(plain, nil, 0o666))
	require.ErrorContains(t, f.SaveFigures("svg", plain, nil), "-svg "+plain+": the figures could not be written: ")
	require.ErrorContains(t, WritableDirectory("svg", plain), "-svg "+plain+": it is not a writable directory: ")
	require.NoError(t, WritableDirectory("svg", filepath.Join(dir, "a", "b")))
	require.ErrorContains(t, f.SaveFigures("png", dir, func(string, string, int, int) error { return errors.New("no ink") }), "no ink")
	require.ErrorContains(t, f.SaveFigures("png", dir, func(string, string, int, int) error { return nil }), "nothing was drawn")
	f.Results = nil
	require.ErrorContains(t, f.SaveFigures("svg", dir, nil), "there is no figure to write")
}
