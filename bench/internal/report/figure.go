package report

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/internal/files"
)

// figureStyle has the colours, of the page and of each figure that is a file.
//
//go:embed figure.css
var figureStyle string

// Style is that of all pages.
func Style() string { return figureStyle }

// SizeOf writes a size for people: 64 KiB.
func SizeOf(bytes int) string { return sizeOf(float64(bytes)) }

// Page is the figure in the page: legend and caption are text around it, which a narrow window
// breaks, and the last word saves it as a file.
func (f *figure) Page() template.HTML {
	var b strings.Builder
	if f.nothing {
		b.WriteString(`<p class="soft">There is nothing to draw.</p>`)
		fmt.Fprintf(&b, `<figcaption>%s</figcaption>`, template.HTMLEscapeString(f.caption))
		return template.HTML(b.String())
	}
	if len(f.entries) > 0 {
		b.WriteString(`<p class="legend">`)
		for _, e := range f.entries {
			fmt.Fprintf(&b, `<span><svg viewBox="0 0 22 8"><line class="%s" x1="0" x2="22" y1="4" y2="4"/></svg>%s</span> `,
				e.class, template.HTMLEscapeString(e.name))
		}
		b.WriteString(`</p>`)
	}
	fmt.Fprintf(&b, `<svg%s viewBox="0 0 %g %g" role="img" aria-label="%s">%s</svg>`, f.class, width, f.height,
		template.HTMLEscapeString(f.title), f.shapes)
	file, _ := f.File()
	fmt.Fprintf(&b, `<figcaption>%s <a class="save" download="%s.svg" href="data:image/svg+xml;base64,%s">save this figure</a></figcaption>`,
		template.HTMLEscapeString(f.caption), f.name, base64.StdEncoding.EncodeToString([]byte(file)))
	return template.HTML(b.String())
}

// What surrounds the drawing in a file.
const (
	above     = 46.0 // the title
	lineHigh  = 18.0 // of legend and caption
	perLine   = 98   // letters of a caption
	perLetter = 6.4  // how wide a letter is at most, on the average
	margin    = 14.0
)

// File is the figure as a file that needs nothing else: title, drawing, legend and caption. It is width by high.
func (f *figure) File() (text string, high float64) {
	y := above + f.height + 8
	x := left
	var legend strings.Builder
	for _, e := range f.entries {
		wide := 30 + perLetter*float64(len(e.name)) + 20
		if x+wide > width && x > left {
			x, y = left, y+lineHigh
		}
		fmt.Fprintf(&legend, `<line class="%s" x1="%g" x2="%g" y1="%g" y2="%g"/><text x="%g" y="%g">%s</text>`, e.class, x,
			x+22, y, y, x+28, y+4, template.HTMLEscapeString(e.name))
		x += wide
	}
	y += lineHigh
	if len(f.entries) > 0 {
		y += 8
	}
	var caption strings.Builder
	for _, line := range prose.Wrap(strings.TrimSpace(f.caption+" "+f.note), perLine) {
		fmt.Fprintf(&caption, `<text x="%g" y="%g">%s</text>`, left, y, template.HTMLEscapeString(line))
		y += lineHigh
	}
	high = y + margin - lineHigh/2
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %[1]g %[2]g"%s role="img" aria-label="%s"><style>%s</style>`+
		`<rect class="paper" width="100%%" height="100%%" style="fill: var(--bg)"/><text class="title" x="%g" y="28">%s</text><g transform="translate(0 %g)">%s</g>%s%s</svg>`+"\n",
		width, high, f.class, template.HTMLEscapeString(f.title), figureStyle, left,
		template.HTMLEscapeString(sentence(f.title)), above, f.shapes, legend.String(), caption.String()), high
}

// sentence begins with a capital letter.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// SaveFigures writes each figure of f into a directory, which -flag named: as it is, or through render, which gets
// the file to read, the one to write, and the figure's size.
func (f *File) SaveFigures(flag, dir string, render func(from, to string, wide, high int) error) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("-%s %s: the figures could not be written: %w", flag, dir, prose.Cause(err))
	}
	figures := f.figures()
	if len(figures) == 0 {
		return fmt.Errorf("-%s %s: there is no figure to write", flag, dir)
	}
	drawn := "" // what render is given, where nobody else may write
	if render != nil {
		temporary, err := os.MkdirTemp("", "bench-figure-")
		if err != nil {
			return fmt.Errorf("-%s %s: %w", flag, dir, err)
		}
		defer os.RemoveAll(temporary)
		drawn = temporary
	}
	for _, g := range figures {
		text, high := g.File()
		b, as := []byte(text), g.name+".svg"
		if render != nil {
			from, to := filepath.Join(drawn, as), filepath.Join(drawn, g.name+".png")
			err := files.Write(from, b)
			if err == nil {
				err = render(from, to, int(width), int(high)+1)
			}
			if err != nil {
				return fmt.Errorf("-%s %s: %w", flag, dir, err)
			}
			if b, err = files.Read(to, mostLoaded); err != nil {
				return fmt.Errorf("-%s %s: nothing was drawn: %w", flag, dir, err)
			}
			as = g.name + ".png"
		}
		if err := files.Write(filepath.Join(dir, as), b); err != nil {
			return fmt.Errorf("-%s %s: the figures could not be written: %w", flag, dir, prose.Cause(err))
		}
	}
	return nil
}

// figures are all that the page has.
func (f *File) figures() (all []*figure) {
	for _, c := range f.charts() {
		for _, g := range c.Figures {
			if !g.nothing {
				all = append(all, g)
			}
		}
	}
	return all
}
