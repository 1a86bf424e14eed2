package docs

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

var (
	mapRow   = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|(.*)$")
	quoted   = regexp.MustCompile("`([^`]*)`")
	listItem = regexp.MustCompile(`(?m)^//\t? +- ([a-z0-9/]+)`)
	word     = regexp.MustCompile(`[a-z0-9]+(/[a-z0-9]+)*`)
)

// packageMap is what ARCHITECTURE.md says of where packages are. Its table names a package, or a family: the path of a tree, such as
// train/..., with a link to the list of the family, which is in that tree: a README.md whose table names the packages, or a doc.go.
type packageMap struct {
	files  fs.FS
	rows   map[string]bool // packages of the table
	listed map[string]bool // packages of the families' lists, each of which stands for those below it, too
	bad    []string
}

// readMap reads the map and the lists that it links to. What leads nowhere is in bad.
func readMap(files fs.FS) (*packageMap, error) {
	m := &packageMap{files: files, rows: map[string]bool{}, listed: map[string]bool{}}
	text, err := fs.ReadFile(files, "ARCHITECTURE.md")
	if err != nil {
		return nil, err
	}
	for _, row := range mapRow.FindAllStringSubmatch(string(text), -1) {
		beside := ""
		for _, cell := range quoted.FindAllStringSubmatch(row[1], -1) {
			if tree, ok := strings.CutSuffix(cell[1], "/..."); ok {
				m.family(tree, row[2])
				continue
			}
			name := cell[1]
			if _, err := fs.Stat(files, name); err != nil && beside != "" {
				name = path.Join(beside, name) // what is beside the first of a cell is named by its end
			}
			if beside == "" {
				beside = path.Dir(name)
			}
			m.name(m.rows, name)
		}
	}
	return m, nil
}

// name notes a package, which must exist.
func (m *packageMap) name(as map[string]bool, dir string) {
	if info, err := fs.Stat(m.files, dir); err != nil || !info.IsDir() {
		m.bad = append(m.bad, dir+" is named, and not there")
	}
	as[dir] = true
}

// family notes the packages of a tree, from the list in it that the row of the map links to.
func (m *packageMap) family(tree, row string) {
	for _, l := range link.FindAllStringSubmatch(row, -1) {
		if path.Dir(l[1]) != tree {
			continue
		}
		text, err := fs.ReadFile(m.files, l[1])
		if err != nil {
			break
		}
		if path.Ext(l[1]) == ".go" {
			for _, item := range listItem.FindAllStringSubmatch(string(text), -1) {
				m.name(m.listed, path.Join(tree, item[1]))
			}
			comment, _, _ := strings.Cut(string(text), "\npackage ")
			for line := range strings.Lines(comment) {
				for _, w := range word.FindAllString(line, -1) {
					if info, err := fs.Stat(m.files, path.Join(tree, w)); err == nil && info.IsDir() && (strings.Contains(w, "/") || listItem.MatchString(line)) {
						m.listed[path.Join(tree, w)] = true
					}
				}
			}
			return
		}
		for _, row := range mapRow.FindAllStringSubmatch(string(text), -1) {
			for _, cell := range quoted.FindAllStringSubmatch(row[1], -1) {
				m.name(m.listed, path.Join(tree, cell[1]))
			}
		}
		return
	}
	m.bad = append(m.bad, tree+"/... links to no list in "+tree)
}

// knows reports whether the map leads to a package.
func (m *packageMap) knows(dir string) bool {
	for up := dir; up != "."; up = path.Dir(up) {
		if m.listed[up] {
			return true
		}
	}
	return m.rows[dir]
}

// unmapped lists what is wrong with the map of a tree: what it names and is not there, and packages of this module that it does not name.
func unmapped(files fs.FS) ([]string, error) {
	m, err := readMap(files)
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || name == "." {
			return err
		}
		if _, err := fs.Stat(files, path.Join(name, "go.mod")); err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
			return fs.SkipDir
		}
		sources, err := fs.Glob(files, path.Join(name, "*.go"))
		if len(sources) > 0 && !m.knows(name) {
			m.bad = append(m.bad, name+" is in no row of ARCHITECTURE.md, and not in the list of its family")
		}
		return err
	})
	return m.bad, err
}

var goFile = regexp.MustCompile(`\b(?:[a-z_0-9]+/)*[a-z_0-9]+\.go\b`)

// lostFiles are the Go files that a text names by a path, or by the end of one, and that are not among these.
func lostFiles(text string, files []string) (lost []string) {
	for _, name := range goFile.FindAllString(text, -1) {
		if !slices.ContainsFunc(files, func(file string) bool { return strings.HasSuffix("/"+file, "/"+name) }) {
			lost = append(lost, name)
		}
	}
	return lost
}

// Each file that ARCHITECTURE.md names exists, in its pictures too.
func TestArchitectureNamesFiles(t *testing.T) {
	var files []string
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		files = append(files, name)
		return err
	}))
	text, err := os.ReadFile(path.Join(root, "ARCHITECTURE.md"))
	require.NoError(t, err)
	require.Empty(t, lostFiles(string(text), files))
	require.Equal(t, []string{"a/c.go", "d.go"}, lostFiles("`a/b.go` a/c.go x/b.go, d.go", []string{"ccl/a/b.go", "x/b.go", "ad.go"}))
}

// Each package is in ARCHITECTURE.md or in the list of its family, and each that is named exists.
func TestArchitecture(t *testing.T) {
	bad, err := unmapped(os.DirFS(root))
	require.NoError(t, err)
	require.Empty(t, bad)
}

func TestArchitectureFinds(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	files := fstest.MapFS{
		"ARCHITECTURE.md": file("| `a`, `none`, `in/b`, `c`, `in/...` | [x](in/README.md) |\n| `train/...`, `lost/...` | [x](train/doc.go) [y](in/README.md) |\n"),
		"in/README.md":    file("| `d`, `gone` | `e` |\n"),
		"train/doc.go":    file("// Package train\n//\n//   - f does\n//   - h, and g/i\n//   - ended was\npackage train\n"),
		"go.mod":          file(""), "a/a.go": file(""), "a/x/a.go": file(""), "in/b/b.go": file(""), "in/c/c.go": file(""), "in/d/d.go": file(""), "in/d/below/d.go": file(""), "in/e/e.go": file(""),
		"train/f/f.go": file(""), "train/g/i/i.go": file(""), "train/h/h.go": file(""), "train/j/j.go": file(""),
		"own/go.mod": file(""), "own/m.go": file(""), "in/d/testdata/x.go": file(""), ".hidden/x.go": file(""),
	}
	bad, err := unmapped(files)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"none is named, and not there", "c is named, and not there", "in/gone is named, and not there", "train/ended is named, and not there", "lost/... links to no list in lost",
		"a/x is in no row of ARCHITECTURE.md, and not in the list of its family", "in/c is in no row of ARCHITECTURE.md, and not in the list of its family",
		"in/e is in no row of ARCHITECTURE.md, and not in the list of its family", "train is in no row of ARCHITECTURE.md, and not in the list of its family",
		"train/j is in no row of ARCHITECTURE.md, and not in the list of its family",
	}, bad)
}
