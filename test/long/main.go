// Long prints tests and packages, as arguments of test/halves.sh.
//
//	go run ./test/long                the tests that -short skips or shortens
//	go run ./test/long -raced         the packages that make race tests: those that run anything side by side
//
// With -part I/N they are those of each N-th package, from the I-th.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	raced := flag.Bool("raced", false, "packages that run something side by side")
	part := flag.String("part", "", "those of package `I/N` and each N-th after it")
	flag.Parse()
	t, err := read(".")
	var args []string
	if err == nil {
		if *raced {
			args, err = t.raced(*part)
		} else {
			args, err = t.long(*part)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "long:", err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(args, "\n"))
}

// tree is the parsed files of a module, by the package's folder.
type tree struct {
	root, module string
	dirs         map[string][]file
}

type file struct {
	*ast.File
	name string
}

// read parses the module at root.
func read(root string) (*tree, error) {
	t := &tree{root: root, dirs: map[string][]file{}}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	t.module = strings.Fields(string(mod))[1]
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root:
			if strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "vendor" || isModule(name) {
				return filepath.SkipDir
			}
		case strings.HasSuffix(name, ".go"):
			parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(root, filepath.Dir(name))
			rel = filepath.ToSlash(rel)
			t.dirs[rel] = append(t.dirs[rel], file{parsed, d.Name()})
		}
		return nil
	})
	return t, err
}

// long returns the arguments of go test that run the tests which -short skips or shortens: those whose package has
// testing.Short in them, or in a function or variable that they use, directly or not.
func (t *tree) long(part string) ([]string, error) {
	asks := func(_ file, n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok { // flag.Lookup
			return lit.Value == `"test.short"`
		}
		return isSelector(n, "testing", "Short")
	}
	first, each, err := parsePart(part)
	if err != nil {
		return nil, err
	}
	var names, packages []string
	number := -1
	for _, dir := range slices.Sorted(maps.Keys(t.dirs)) {
		tests := dependent(t.dirs[dir], asks)
		if slices.Contains(tests, "TestMain") || slices.Contains(tests, "init") {
			tests = []string{"Test.*", "Example.*", "Fuzz.*"}
		}
		if len(tests) == 0 {
			continue
		}
		if number++; number%each == first {
			names = append(names, tests...)
			packages = append(packages, pattern(dir))
		}
	}
	return arguments(names, packages, "no test asks for testing.Short")
}

// parsePart reads I/N; no part is all.
func parsePart(part string) (first, each int, err error) {
	if part == "" {
		return 0, 1, nil
	}
	if n, err := fmt.Sscanf(part, "%d/%d", &first, &each); n != 2 || first < 0 || first >= each {
		return 0, 0, fmt.Errorf("-part %s is not as 0/2: %v", part, err)
	}
	return first, each, nil
}

func pattern(dir string) string { return "./" + path.Clean(dir) }

// arguments are -run NAMES -- PACKAGES.
func arguments(names, packages []string, none string) ([]string, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("%s", none)
	}
	slices.Sort(names)
	slices.Sort(packages)
	return append([]string{"-run", "^(" + strings.Join(slices.Compact(names), "|") + ")$", "--"}, packages...), nil
}

func isSelector(n ast.Node, pkg, name string) bool {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg && sel.Sel.Name == name
}

// isModule reports whether a directory is a module of its own.
func isModule(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "go.mod"))
	return len(found) > 0
}

// dependent are the tests of a package that depend on a node that asks finds. What a declaration uses is taken by
// name alone, so a method counts for all of its name: that can only make the list longer.
func dependent(files []file, asks func(file, ast.Node) bool) (tests []string) {
	uses := map[string][]string{} // declared name: the names in it
	depends := map[string]bool{}
	for _, f := range files {
		add := func(name string, n ast.Node) {
			ast.Inspect(n, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					uses[name] = append(uses[name], id.Name)
				}
				if asks(f, n) {
					depends[name] = true
				}
				return true
			})
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
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
	for name := range depends {
		if isTest(name) || name == "init" {
			tests = append(tests, name)
		}
	}
	return tests
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example")
}
