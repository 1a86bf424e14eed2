package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// looks is a script that finds text that is cut off, lies over other text, or can hardly be told from what is behind it. It
// leaves what it found, and how many texts it looked at, in the page.
const looks = `
for (const d of document.querySelectorAll('details')) d.open = true;
const found = [], texts = [...document.querySelectorAll('svg text')];
const wide = document.documentElement.clientWidth;
const paper = getComputedStyle(document.body).backgroundColor;
const light = c => { const [r, g, b] = c.match(/[\d.]+/g).slice(0, 3).map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
	return .2126 * r + .7152 * g + .0722 * b; };
const contrast = c => { const [a, b] = [light(c), light(paper)].sort((x, y) => y - x); return (a + .05) / (b + .05); };
const pale = (what, c) => { if (contrast(c) < 4.5) found.push('pale: ' + what + ': ' + c + ' on ' + paper); };
for (const t of texts) {
	const r = t.getBoundingClientRect(), s = t.ownerSVGElement.getBoundingClientRect();
	if (r.left < s.left - .5 || r.right > s.right + .5 || r.top < s.top - .5 || r.bottom > s.bottom + .5) found.push('cut off: ' + t.textContent);
	pale(t.textContent, getComputedStyle(t).fill);
}
for (const s of document.querySelectorAll('svg')) {
	const inside = [...s.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
	inside.forEach(([a, p], i) => inside.slice(i + 1).forEach(([b, q]) => {
		if (Math.min(p.right, q.right) - Math.max(p.left, q.left) > .5 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > .5) found.push('over each other: ' + a + ' / ' + b);
	}));
}
for (const e of document.querySelectorAll('h1, h2, p, li, figcaption, summary, .legend span, code, td, th')) {
	const r = e.getBoundingClientRect();
	if (!e.closest('.wide') && r.width > 0 && (r.left < -.5 || r.right > wide + .5 || e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)) found.push('beyond the window: ' + e.textContent);
	pale(e.textContent.slice(0, 60), getComputedStyle(e).color);
}
if (document.documentElement.scrollWidth > wide) found.push('the page is wider than the window');
document.body.innerHTML = '';
document.body.dataset.found = JSON.stringify({Found: found, Texts: texts.length, Wide: wide, Dark: matchMedia('(prefers-color-scheme: dark)').matches});
`

// TestPagesInABrowser looks at pages as a browser lays them out: nothing is cut off, nothing lies over anything else, and all
// text can be read, in light and in dark, in a wide and in a narrow window.
func TestPagesInABrowser(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("no chromium here (Debian: apt-get install chromium)")
	}
	dir := t.TempDir()
	look := func(t *testing.T, page string, wide int, dark bool) (found []string) {
		page = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(page, "") // which lets no script run
		page = strings.Replace(page, "</body>", "<script>"+looks+"</script></body>", 1)
		file := filepath.Join(dir, "page.html")
		require.NoError(t, os.WriteFile(file, []byte(page), 0o666))
		scheme := 1
		if dark {
			scheme = 0
		}
		var dom, log bytes.Buffer
		cmd := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--user-data-dir="+filepath.Join(dir, "profile"),
			fmt.Sprintf("--window-size=%d,800", wide), fmt.Sprintf("--blink-settings=preferredColorScheme=%d", scheme), "--dump-dom", "file://"+file)
		cmd.Stdout, cmd.Stderr = &dom, &log
		require.NoError(t, cmd.Run(), log.String())
		m := regexp.MustCompile(`data-found="([^"]*)"`).FindStringSubmatch(dom.String())
		require.NotNil(t, m, log.String())
		var r struct {
			Found       []string
			Texts, Wide int
			Dark        bool
		}
		require.NoError(t, json.Unmarshal([]byte(html.UnescapeString(m[1])), &r))
		require.Positive(t, r.Texts)
		require.LessOrEqual(t, r.Wide, wide)
		require.Equal(t, dark, r.Dark)
		return r.Found
	}
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
			t.Run(fmt.Sprintf("%d wide, dark %v", wide, dark), func(t *testing.T) { require.Empty(t, look(t, page+"</body></html>", wide, dark)) })
		}
	}
	t.Run("figures as files", func(t *testing.T) { require.Empty(t, look(t, figures+"</body>", 1100, false)) })
	require.Equal(t, []string{"cut off: a long text", "cut off: another", "over each other: a long text / another", "beyond the window: wide",
		"pale: wide: rgb(238, 238, 238) on rgb(255, 255, 255)", "the page is wider than the window"}, look(t, `<!DOCTYPE html><body style="background: #fff; ">
		<svg width="50" height="20"><text x="1" y="15">a long text</text><text x="9" y="17">another</text></svg><p style="width: 2000px; color: #eee">wide</p></body>`, 1100, false))
}
