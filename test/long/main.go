// Long prints the tests that -short skips or shortens, as arguments of test/halves.sh.
//
//	go run ./test/long
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	args, err := long(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "long:", err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(args, "\n"))
}

// long returns the arguments of go test that run the tests in the module at root which -short skips or shortens:
// those whose package has testing.Short in them, or in a function or variable that they use, directly or not.
func long(root string) ([]string, error) {
	dirs := map[string][]*ast.File{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root:
			if strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || isModule(file) {
				return filepath.SkipDir
			}
		case strings.HasSuffix(file, ".go"):
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(root, filepath.Dir(file))
			dirs[filepath.ToSlash(rel)] = append(dirs[filepath.ToSlash(rel)], parsed)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var names, packages []string
	for dir, files := range dirs {
		if tests := shortened(files); len(tests) > 0 {
			names = append(names, tests...)
			packages = append(packages, "./"+path.Clean(dir))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no test below %s asks for testing.Short", root)
	}
	slices.Sort(names)
	slices.Sort(packages)
	return append([]string{"-run", "^(" + strings.Join(slices.Compact(names), "|") + ")$", "--"}, packages...), nil
}

// isModule reports whether a directory is a module of its own.
func isModule(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "go.mod"))
	return len(found) > 0
}

// shortened are the tests of a package that depend on testing.Short. What a declaration uses is taken by name alone,
// so a method counts for all of its name: that can only make the list longer.
func shortened(files []*ast.File) (tests []string) {
	uses := map[string][]string{} // declared name: the names in it
	depends := map[string]bool{}
	add := func(name string, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "testing" && n.Sel.Name == "Short" {
					depends[name] = true
				}
			case *ast.Ident:
				uses[name] = append(uses[name], n.Name)
			case *ast.BasicLit:
				if n.Value == `"test.short"` { // flag.Lookup
					depends[name] = true
				}
			}
			return true
		})
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch d := n.(type) {
			case *ast.FuncDecl:
				add(d.Name.Name, d)
				return false
			case *ast.ValueSpec:
				for _, name := range d.Names {
					add(name.Name, d)
				}
				return false
			}
			return true
		})
	}
	for grown := true; grown; {
		grown = false
		for name, used := range uses {
			if !depends[name] && slices.ContainsFunc(used, func(u string) bool { return depends[u] }) {
				depends[name], grown = true, true
			}
		}
	}
	if depends["TestMain"] || depends["init"] {
		return []string{"Test.*", "Example.*", "Fuzz.*"}
	}
	for name := range depends {
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example") {
			tests = append(tests, name)
		}
	}
	return tests
}
