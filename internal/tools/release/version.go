package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

// version is what CHANGELOG.md says of the release.
type version struct {
	number  string // without a v
	says    string // ccl.Version: the same, or, between releases, that of the next one with -dev
	changes string // the section's text, and between releases that of what is not released
}

var (
	constant = regexp.MustCompile(`(?m)^const Version = "(.+)"$`)
	section  = regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$`)
	heading  = regexp.MustCompile(`(?m)^## `)
)

// readVersion reads the newest release of CHANGELOG.md. It is an error if ccl.Version is neither
// that nor a later one with
// -dev, or if a nested module requires another one.
func readVersion(root string) (version, error) {
	log, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return version{}, err
	}
	v, err := newest(string(log))
	if err != nil {
		return version{}, err
	}
	source, err := os.ReadFile(filepath.Join(root, "ccl/comm.go"))
	if err != nil {
		return version{}, err
	}
	m := constant.FindSubmatch(source)
	if m == nil {
		return version{}, fmt.Errorf("ccl/comm.go has no line that matches %s", constant)
	}
	v.says = string(m[1])
	if next, dev := strings.CutSuffix(v.says, "-dev"); dev && semver.Compare("v"+next, "v"+v.number) > 0 {
		v.changes += unreleased(string(log))
	} else if v.says != v.number {
		return version{}, fmt.Errorf("CHANGELOG.md's newest release is %s, ccl/comm.go has %s: it is that, or a later one with -dev", v.number, v.says)
	}
	for _, dir := range nested {
		mod, err := os.ReadFile(filepath.Join(root, dir, "go.mod"))
		if err != nil {
			return version{}, err
		}
		if err := requires(string(mod), v.number); err != nil {
			return version{}, fmt.Errorf("%s/go.mod: %w", dir, err)
		}
	}
	return v, nil
}

// unreleased returns the section of a changelog that has no version yet.
func unreleased(log string) string {
	_, text, _ := strings.Cut(log, "\n## [Unreleased]\n")
	return heading.Split(text, 2)[0]
}

// newest returns the first section of a changelog that has a version and a date.
func newest(log string) (version, error) {
	m := section.FindStringSubmatchIndex(log)
	if m == nil {
		return version{}, fmt.Errorf(`CHANGELOG.md has no line "## [X.Y.Z] - YYYY-MM-DD": cut the release first`)
	}
	return version{number: log[m[2]:m[3]], changes: heading.Split(log[m[1]:], 2)[0]}, nil
}

// requires reports it if a go.mod does not require goccl in that version: a replace directive holds only in the tree.
func requires(mod, number string) error {
	m := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(goccl) + ` v(\S+)$`).FindStringSubmatch(mod)
	if m == nil || m[1] != number {
		return fmt.Errorf("requires %s in version %q, want v%s", goccl, m, number)
	}
	return nil
}
