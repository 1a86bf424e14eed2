package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/goccl/goccl/bench/internal/browser"
	"github.com/stretchr/testify/require"
)

// TestPagesInABrowser looks at pages as a browser lays them out: nothing is cut off, nothing lies over anything else, and all
// text can be read, in light and in dark, in a wide and in a narrow window.
func TestPagesInABrowser(t *testing.T) {
	pages := map[string]*File{"one operation": sampleFile(3), "nine operations": operations(9), "a hundred ranks": sampleFile(100), "one size": sampleFile(3), "one size of nine": operations(9), "two backends": sampleFile(2)}
	pages["one operation"].Busy = "busy: the process of rank 1 on a-host-with-a-long-name.example.org waits for a processor 40 % of the time, so times are longer, and vary"
	for _, name := range []string{"one size", "one size of nine"} {
		f := pages[name]
		rows := f.Results[:0]
		for _, r := range f.Results {
			if r.Size == 1<<17 {
				rows = append(rows, r)
			}
		}
		f.Results = rows
	}
	two := pages["two backends"]
	two.Config.Backends = []string{"cpu", "cpu"}
	var twice []Row
	for _, r := range two.Results {
		twice = append(twice, r, r)
	}
	two.Results = twice
	// All in one, since a browser takes seconds to start.
	page, figures := "", `<!DOCTYPE html><body style="background: #fff">`
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		var b bytes.Buffer
		require.NoError(t, pages[name].HTML(&b))
		if page == "" {
			page, _, _ = strings.Cut(b.String(), "<body>")
			page += "<body>"
		}
		_, body, _ := strings.Cut(b.String(), "<body>")
		body, _, _ = strings.Cut(body, "</body>")
		page += "<h1>" + name + "</h1>" + body
		for _, g := range pages[name].figures() {
			text, _ := g.File()
			figures += text
		}
	}
	for _, wide := range []int{1100, 500} {
		for _, dark := range []bool{false, true} {
			if testing.Short() && dark != (wide == 500) { // a browser for each takes a second
				continue
			}
			t.Run(fmt.Sprintf("%d wide, dark %v", wide, dark), func(t *testing.T) { require.Empty(t, browser.Look(t, page+"</body></html>", wide, dark)) })
		}
	}
	t.Run("figures as files", func(t *testing.T) { require.Empty(t, browser.Look(t, figures+"</body>", 1100, false)) })
	require.Equal(t, []string{"cut off: a long text", "cut off: another", "over each other: a long text / another", "beyond the window: wide",
		"pale: wide: rgb(238, 238, 238) on rgb(255, 255, 255)", "the page is wider than the window"}, browser.Look(t, `<!DOCTYPE html><body style="background: #fff; ">
		<svg width="50" height="20"><text x="1" y="15">a long text</text><text x="9" y="17">another</text></svg><p style="width: 2000px; color: #eee">wide</p></body>`, 1100, false))
}
