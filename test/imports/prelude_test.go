package imports

import (
	"go/ast"
	"io/fs"
	"os"
	"path"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// A call gets its place in the order by recorder.begin or recorder.queue. What must hold before that, of every call, is looked at in
// the functions that may do so, and in no other: one that made a call by hand could forget some of it.
var preludes = []string{"block", "issueDevice", "issue"}

// begun lists the functions of package ccl that give a call its place, but for preludes.
func begun(files fs.FS) (list []string, err error) {
	err = in(files, "ccl", func(src *source) {
		if path.Dir(src.name) != "ccl" {
			return
		}
		for _, d := range src.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || slices.Contains(preludes, f.Name.Name) {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if ok && (s.Sel.Name == "begin" || s.Sel.Name == "queue") {
					if rec, ok := s.X.(*ast.SelectorExpr); ok && rec.Sel.Name == "rec" {
						list = append(list, src.name+" "+f.Name.Name)
					}
				}
				return true
			})
		}
	})
	return list, err
}

func TestPreludes(t *testing.T) {
	list, err := begun(os.DirFS("../.."))
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestPreludesFinds(t *testing.T) {
	list, err := begun(fstest.MapFS{
		"ccl/a.go": {Data: []byte("package ccl\n\nfunc (c *Comm) block() { c.rec.begin(k, nil, 0) }\n\nfunc seat(pool *Comm) { e := pool.rec.begin(k, nil, 0) }\n")},
		"ccl/b.go": {Data: []byte("package ccl\n\nfunc (b *backlog) run(g *group) { b.begin(g); b.c.rec.queue(g.at) }\n")},
	})
	require.NoError(t, err)
	require.Equal(t, []string{"ccl/a.go seat", "ccl/b.go run"}, list)
}
