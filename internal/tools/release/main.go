// Release checks that the tree is fit to be released as the version that ccl.Version says. Between
// releases, when that ends with -dev, the user of the tree gets it as the last release.
//
//	go run -C internal/tools ./release [-shallow]
//
// It compares the exported API with that of the last release, and looks for requirements with known
// holes. Then it plays the user of the new one: from an empty module, it gets goccl, the nested
// modules and bench out of a module proxy that is made of the tree.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// goccl is the path of the module that is released.
const goccl = "github.com/goccl/goccl"

// last is the commit of the last release: of 0.2.0.
const last = "e2c8510"

// nested are the directories of the other modules that are released with it, by the same version.
var nested = []string{"interop/blob", "interop/cu", "interop/empi", "interop/gomlx", "interop/prometheus"}

func main() {
	shallow := flag.Bool("shallow", false, "compare the API only if the last release's commit is in this clone")
	flag.Parse()
	root, err := output("", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		fail(err)
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		fail(err)
	}
	err = check(strings.TrimSpace(root), work, *shallow)
	os.RemoveAll(work)
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "release:", err)
	os.Exit(1)
}

// check makes all checks of the tree at root, with files of its own in work, and stops at the first that fails.
func check(root, work string, shallow bool) error {
	v, err := readVersion(root)
	if err != nil {
		return err
	}
	fmt.Printf("release: version %s, last release %s: ccl.Version, CHANGELOG.md and the nested modules agree\n", v.says,
		v.number)
	modules, err := noHoles(root)
	if err != nil {
		return err
	}
	fmt.Printf("release: %d go.mod files: none requires a version with a known hole\n", modules)
	if _, err := output(root, "git", "cat-file", "-e", last); err != nil && shallow {
		fmt.Printf("release: API: NOT COMPARED: %s is not in this clone\n", last)
	} else {
		breaks, err := incompatible(root, filepath.Join(work, "api"))
		if err != nil {
			return err
		}
		if err := allNamed(breaks, v.changes); err != nil {
			return err
		}
		fmt.Printf("release: API: %d incompatible changes since %s, all of them in CHANGELOG.md\n", len(breaks), last)
	}
	return asUser(root, filepath.Join(work, "user"), v)
}

// output runs a command in dir and returns its standard output; an error has what it wrote to standard error.
func output(dir, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", c, err, errs.String())
	}
	return string(out), nil
}
