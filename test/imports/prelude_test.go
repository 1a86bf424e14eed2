package imports

import (
	"go/ast"
	"slices"
)

// preludes are the functions that may give a call its place in the order.
var preludes = []string{"block", "issueDevice", "issue"}

// A call gets its place in the order by recorder.begin or recorder.queue. What must hold before that, of every call, is looked at in
// the functions that may do so, and in no other: one that made a call by hand could forget some of it.
var begunByPreludes = rule{
	name: "calls begin in their preludes", dirs: []string{"ccl"}, alone: true,
	finds: func(src *source, bad func(string)) {
		for _, d := range src.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || slices.Contains(preludes, f.Name.Name) {
				continue
			}
			each(f, func(s *ast.SelectorExpr) {
				if rec, ok := s.X.(*ast.SelectorExpr); ok && rec.Sel.Name == "rec" && (s.Sel.Name == "begin" || s.Sel.Name == "queue") {
					bad(src.name + " " + f.Name.Name)
				}
			})
		}
	},
	planted: map[string]string{
		"ccl/a.go": "package ccl\n\nfunc (c *Comm) block() { c.rec.begin(k, nil, 0) }\n\nfunc seat(pool *Comm) { e := pool.rec.begin(k, nil, 0) }\n",
		"ccl/b.go": "package ccl\n\nfunc (b *backlog) run(g *group) { b.begin(g); b.c.rec.queue(g.at) }\n",
	},
	want: []string{"ccl/a.go seat", "ccl/b.go run"},
}
