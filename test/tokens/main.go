// Tokens counts the tokens of the tree's Go: how much there is to read, whatever the lines' lengths.
//
//	go run ./test/tokens [-most N] [REV]
//
// With a revision of git, such as the last release's, it counts that too and prints the difference. With -most N, it
// prints the N packages that have the most tokens, or that have changed the most since REV.
//
// Comments, generated files and testdata do not count. Tests are the files whose names end in
// _test.go, and the packages that serve tests alone: those below a folder whose name ends in test.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	most := flag.Int("most", 0, "print so many packages")
	flag.Parse()
	if err := run(os.Stdout, flag.Arg(0), *most); err != nil {
		fmt.Fprintln(os.Stderr, "tokens:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, rev string, most int) error {
	now, err := ofDir(".")
	if err != nil {
		return err
	}
	total := now.total()
	if rev == "" {
		fmt.Fprintf(out, "%9d source\n%9d tests\n", total[source], total[tests])
		printMost(out, now, nil, most)
		return nil
	}
	then, err := ofRevision(rev)
	if err != nil {
		return err
	}
	before := then.total()
	for kind, name := range []string{source: "source", tests: "tests"} {
		fmt.Fprintf(out, "%9d %-7s %9d in %s: %+.1f %%\n", total[kind], name, before[kind], rev,
			100*float64(total[kind]-before[kind])/float64(max(before[kind], 1)))
	}
	printMost(out, now, then, most)
	return nil
}

const (
	source = iota
	tests
	kinds
)

// counts has the tokens of each folder.
type counts map[string][kinds]int

func (c counts) add(name string, text []byte) error {
	n, err := tokens(name, text)
	if err != nil {
		return err
	}
	dir := path.Dir(name)
	of := c[dir]
	of[kindOf(name)] += n
	c[dir] = of
	return nil
}

func (c counts) total() (sum [kinds]int) {
	for _, of := range c {
		for kind := range kinds {
			sum[kind] += of[kind]
		}
	}
	return sum
}

func kindOf(name string) int {
	test := func(folder string) bool { return strings.HasSuffix(folder, "test") }
	if strings.HasSuffix(name, "_test.go") || slices.ContainsFunc(folders(name), test) {
		return tests
	}
	return source
}

// tokens counts the tokens of one file, which is 0 if a program has written it.
func tokens(name string, text []byte) (int, error) {
	if !strings.HasSuffix(name, ".go") {
		return 0, nil
	}
	head, err := parser.ParseFile(token.NewFileSet(), name, text, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		return 0, err
	}
	if ast.IsGenerated(head) {
		return 0, nil
	}
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile(name, -1, len(text)), text, nil, 0)
	for n := 0; ; {
		_, t, literal := s.Scan()
		if t == token.EOF {
			return n, nil
		}
		if t != token.SEMICOLON || literal == ";" { // a semicolon that nobody has written
			n++
		}
	}
}

// ofDir counts the files below dir, without hidden folders and testdata.
func ofDir(dir string) (counts, error) {
	c := counts{}
	return c, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != dir && leftOut(d.Name()) {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		return c.add(filepath.ToSlash(relative), text)
	})
}

func leftOut(folder string) bool { return strings.HasPrefix(folder, ".") || folder == "testdata" }

// ofRevision counts the files that git has in rev.
func ofRevision(rev string) (counts, error) {
	archive, err := exec.Command("git", "archive", "--format=tar", rev).Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = errors.New(strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("git archive %s: %w", rev, err)
	}
	c := counts{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg || slices.ContainsFunc(folders(h.Name), leftOut) {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		if err := c.add(h.Name, text); err != nil {
			return nil, err
		}
	}
}

// folders are those that a file lies in, from the top of the tree.
func folders(name string) []string { return strings.Split(name, "/")[:strings.Count(name, "/")] }

func printMost(out io.Writer, now, then counts, most int) {
	if most == 0 {
		return
	}
	type row struct {
		dir string
		by  [kinds]int
	}
	var rows []row
	for dir, of := range now {
		rows = append(rows, row{dir, [kinds]int{of[source] - then[dir][source], of[tests] - then[dir][tests]}})
	}
	for dir, of := range then {
		if _, still := now[dir]; !still {
			rows = append(rows, row{dir, [kinds]int{-of[source], -of[tests]}})
		}
	}
	size := func(r row) int { return max(r.by[source], -r.by[source]) + max(r.by[tests], -r.by[tests]) }
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(size(b)-size(a), strings.Compare(a.dir, b.dir)) })
	fmt.Fprintf(out, "\n%9s %9s\n", "source", "tests")
	for _, r := range rows[:min(most, len(rows))] {
		if size(r) > 0 {
			fmt.Fprintf(out, "%9d %9d %s\n", r.by[source], r.by[tests], r.dir)
		}
	}
}
