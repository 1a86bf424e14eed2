package main

import (
	"go/ast"
	"go/build/constraint"
	"path"
	"slices"
	"strings"
)

// alone are packages whose programs start no goroutine, though a package that they need has functions that do.
var alone = map[string]bool{
	"test/model": true, // explores one order of events after another; of package lived it uses no timer
}

// raced lists the packages whose tests start a goroutine: what else is there has nothing to race with.
func (t *tree) raced(part string) (raced []string, err error) {
	first, each, err := parsePart(part)
	if err != nil {
		return nil, err
	}
	starts := map[string]bool{}
	for dir, files := range t.dirs {
		starts[dir] = slices.ContainsFunc(files, func(f file) bool { return !f.isTest() && f.starts() })
	}
	for dir, files := range t.dirs {
		if !slices.ContainsFunc(files, file.isTest) {
			continue
		}
		side := starts[dir] || slices.ContainsFunc(files,
			func(f file) bool { return f.isTest() && (f.starts() || f.forRace()) })
		seen := map[string]bool{}
		for _, f := range files {
			side = side || t.reaches(f, starts, seen)
		}
		if side && !alone[dir] {
			raced = append(raced, pattern(dir))
		}
	}
	slices.Sort(raced)
	i := -1
	return slices.DeleteFunc(raced, func(string) bool { i++; return i%each != first }), nil
}

// reaches reports whether what f imports of the module, directly or not, starts a goroutine.
func (t *tree) reaches(f file, starts, seen map[string]bool) bool {
	for _, i := range f.Imports {
		dir, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), t.module)
		dir = path.Clean("./" + strings.TrimPrefix(dir, "/"))
		if !ok || seen[dir] {
			continue
		}
		seen[dir] = true
		if starts[dir] {
			return true
		}
		for _, g := range t.dirs[dir] {
			if !g.isTest() && t.reaches(g, starts, seen) {
				return true
			}
		}
	}
	return false
}

func (f file) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// starts reports whether a file starts a goroutine, or has a package do it that calls back.
func (f file) starts() bool {
	for _, i := range f.Imports {
		switch strings.Trim(i.Path.Value, `"`) {
		case "net/http", "net/http/httptest", "testing/synctest", "os/signal":
			return true
		}
	}
	found := false
	ast.Inspect(f.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr: // of a WaitGroup; of a test; of package time or context
			sel, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && (sel.Sel.Name == "Go" && len(n.Args) > 0 || sel.Sel.Name == "Parallel" ||
				sel.Sel.Name == "AfterFunc")
		}
		return !found
	})
	return found
}

// forRace reports whether a file is compiled with the race detector alone.
func (f file) forRace() bool {
	for _, group := range f.Comments {
		for _, c := range group.List {
			if e, err := constraint.Parse(c.Text); err == nil && group.Pos() < f.Package {
				all := func(race bool) bool {
					return e.Eval(func(tag string) bool { return tag != "race" && tag != "noasm" || tag == "race" && race })
				}
				return all(true) && !all(false)
			}
		}
	}
	return false
}
