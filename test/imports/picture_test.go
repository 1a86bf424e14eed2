package imports

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// picture is a drawing of packages and arrows: labels, and lines of |, -, + whose heads are v, > and <. A label is one name or several,
// with the tags that compile them in.
type picture struct {
	lines  []string
	labels map[[2]int][]string // what stands at a place, by line and column
	reach  map[[2]int]bool     // the places of the line that is being followed
	from   []string
	to     []string
}

var label = regexp.MustCompile(`[a-z][a-z0-9/.]*(, [a-z][a-z0-9/.]*)*( \[[^\]]*\])?`)

func newPicture(text string) *picture {
	p := &picture{lines: strings.Split(text, "\n"), labels: map[[2]int][]string{}, reach: map[[2]int]bool{}}
	for y, line := range p.lines {
		for _, m := range label.FindAllStringIndex(line, -1) {
			names, _, _ := strings.Cut(line[m[0]:m[1]], " [")
			for x := m[0]; x < m[1] && names != "v"; x++ {
				p.labels[[2]int{y, x}] = strings.Split(names, ", ")
			}
		}
	}
	return p
}

// at is what is drawn at a place: a blank outside, and where a label is.
func (p *picture) at(y, x int) byte {
	if y < 0 || y >= len(p.lines) || x < 0 || x >= len(p.lines[y]) || p.labels[[2]int{y, x}] != nil {
		return ' '
	}
	return p.lines[y][x]
}

// follow goes along a line from one of its places to all of its ends.
func (p *picture) follow(y, x int) {
	c := p.at(y, x)
	if p.reach[[2]int{y, x}] || !strings.ContainsRune("|-+v<>", rune(c)) {
		return
	}
	p.reach[[2]int{y, x}] = true
	if c != '-' && c != '<' && c != '>' {
		p.from = append(p.from, p.labels[[2]int{y - 1, x}]...)
		if c == 'v' {
			p.to = append(p.to, p.labels[[2]int{y + 1, x}]...)
		}
		for _, to := range []int{y - 1, y + 1} {
			if up := p.at(to, x); up == '|' || up == '+' || up == 'v' {
				p.follow(to, x)
			}
		}
	}
	if c == '|' || c == 'v' {
		return
	}
	for _, d := range []int{-1, 1} {
		if at := p.at(y, x+d); at != '|' && at != 'v' {
			p.follow(y, x+d)
		}
		switch beside := p.labels[[2]int{y, x + 2*d}]; {
		case p.at(y, x+d) != ' ':
		case c == '<' && d < 0, c == '>' && d > 0:
			p.to = append(p.to, beside...)
		case c == '-':
			p.from = append(p.from, beside...)
		}
	}
}

// arrows lists what imports what by a picture: each name that a line begins at each name at one of its heads.
func arrows(text string) (all []string) {
	p := newPicture(text)
	for y := range p.lines {
		for x := range p.lines[y] {
			p.from, p.to = nil, nil
			p.follow(y, x)
			for _, from := range p.from {
				for _, to := range p.to {
					all = append(all, from+" imports "+to)
				}
			}
		}
	}
	sort.Strings(all)
	return slices.Compact(all)
}

// untrue lists the arrows that stand for no import. imports has what each package imports; a name is that of a package, of one below
// ccl/internal, or of a tree one of whose packages it is enough to be.
func untrue(arrows []string, imports map[string][]string) (bad []string) {
	for _, arrow := range arrows {
		who, whom, _ := strings.Cut(arrow, " imports ")
		found := false
		for _, below := range []string{"/", "/ccl/internal/", "/ccl/internal/native/", "/bench/internal/"} {
			for path, list := range imports {
				name := strings.TrimSuffix(who, "/...")
				if path != module+below+name && (name == who || !strings.HasPrefix(path, module+below+name+"/")) {
					continue
				}
				for _, in := range []string{"/", "/ccl/internal/", "/ccl/internal/native/"} {
					found = found || slices.Contains(list, module+in+whom)
				}
			}
		}
		if !found {
			bad = append(bad, arrow)
		}
	}
	return bad
}

// Each arrow of ARCHITECTURE.md's picture of the packages is an import. The tags in brackets are not looked at.
func TestPicture(t *testing.T) {
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	require.NoError(t, err)
	_, drawn, _ := strings.Cut(string(text), "\n```\n")
	drawn, _, ok := strings.Cut(drawn, "\n```\n")
	require.True(t, ok)
	imports := map[string][]string{}
	require.NoError(t, importsBelow(os.DirFS("../.."), ".", imports))
	all := arrows(strings.Replace(drawn, "a program", "         ", 1))
	require.Len(t, all, 35, "an arrow that misses its name by a column is none: if the picture has changed, count them")
	require.Empty(t, untrue(all, imports))
}

func TestPictureFinds(t *testing.T) {
	const drawn = `
   a    b/...   c
   +------+-----+
          v
        d, e [x] ---> f <-- g
          |           |
          +--> h      v
          v           i
          j
`
	all := arrows(drawn)
	require.Equal(t, strings.Fields("a>d a>e b/...>d b/...>e c>d c>e d>f d>h d>j e>f e>h e>j f>i g>f"), strings.Fields(strings.ReplaceAll(strings.Join(all, " "), " imports ", ">")))
	imports := map[string][]string{}
	for _, arrow := range all {
		who, whom, _ := strings.Cut(arrow, " imports ")
		who = module + "/" + strings.Replace(who, "/...", "/below", 1)
		imports[who] = append(imports[who], fmt.Sprint(module, "/ccl/internal/", whom))
	}
	require.Empty(t, untrue(all, imports))
	imports[module+"/f"] = []string{module + "/other/i"}
	delete(imports, module+"/b/below")
	require.Equal(t, []string{"b/... imports d", "b/... imports e", "f imports i"}, untrue(all, imports))
}
