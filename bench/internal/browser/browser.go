// Package browser shows pages to a browser, for tests.
package browser

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/internal/plain"
)

// Page is what a browser makes of the page in a file, in a window so wide, and what it logs.
// Without a browser it skips the test.
func Page(t *testing.T, file string, wide int, flags ...string) (dom, log string) {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
			"--user-data-dir=" + t.TempDir(),
			fmt.Sprintf("--window-size=%d,800", wide)}, flags...)
		cmd := exec.CommandContext(t.Context(), path, append(args, "--dump-dom", "file://"+file)...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		require.NoError(t, cmd.Run(), errs.String())
		return out.String(), errs.String()
	}
	t.Skip("no chromium here (Debian: apt-get install chromium)")
	return "", ""
}

// looks is a script that finds text that is cut off, lies over other text, or can hardly be told
// from what is behind it. It leaves what it found, and at how many texts it looked, in the page.
const looks = `
for (const d of document.querySelectorAll('details')) d.open = true;
const found = [], texts = [...document.querySelectorAll('svg text')], words = document.querySelectorAll('h1, h2, p, li, figcaption, summary, .legend span, code, td, th');
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
for (const e of words) {
	const r = e.getBoundingClientRect();
	if (!e.closest('.wide') && r.width > 0 && (r.left < -.5 || r.right > wide + .5 || e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)) found.push('beyond the window: ' + e.textContent);
	pale(e.textContent.slice(0, 60), getComputedStyle(e).color);
}
if (document.documentElement.scrollWidth > wide) found.push('the page is wider than the window');
document.body.innerHTML = '';
document.body.dataset.found = JSON.stringify({Found: found, Texts: texts.length + words.length, Wide: wide, Dark: matchMedia('(prefers-color-scheme: dark)').matches});
`

// Look returns what is wrong with a page as a browser lays it out: text that is cut off, lies over
// other text or can hardly be read.
func Look(t *testing.T, page string, wide int, dark bool) (found []string) {
	t.Helper()
	// which lets no script run
	page = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(page, "")
	page = strings.Replace(page, "</body>", "<script>"+looks+"</script></body>", 1)
	file := filepath.Join(t.TempDir(), "page.html")
	to, err := files.Create(file)
	require.NoError(t, err)
	_, err = to.WriteString(page)
	require.NoError(t, errors.Join(err, to.Close()))
	scheme := 1
	if dark {
		scheme = 0
	}
	dom, log := Page(t, file, wide, fmt.Sprintf("--blink-settings=preferredColorScheme=%d", scheme))
	m := regexp.MustCompile(`data-found="([^"]*)"`).FindStringSubmatch(dom)
	require.NotNil(t, m, log)
	var r struct {
		Found       []string
		Texts, Wide int
		Dark        bool
	}
	require.NoError(t, plain.Unmarshal([]byte(html.UnescapeString(m[1])), &r))
	require.Positive(t, r.Texts)
	require.LessOrEqual(t, r.Wide, wide)
	require.Equal(t, dark, r.Dark)
	return r.Found
}
