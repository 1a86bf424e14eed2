package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// incompatible returns apidiff's lines on what a program that was written for the last release may miss in this one.
func incompatible(root, work string) ([]string, error) {
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	old, tool := filepath.Join(work, "old"), filepath.Join(work, "apidiff")
	if _, err := output(root, "git", "worktree", "add", "--detach", "--force", old, last); err != nil {
		return nil, fmt.Errorf("the last release's commit is needed, so no shallow clone: %w", err)
	}
	defer func() { _, _ = output(root, "git", "worktree", "remove", "--force", old) }()
	if _, err := output(filepath.Join(root, "internal/tools"), "go", "build", "-o", tool,
		"golang.org/x/exp/cmd/apidiff"); err != nil {
		return nil, err
	}
	before, after := filepath.Join(work, "before"), filepath.Join(work, "after")
	for dir, file := range map[string]string{old: before, root: after} {
		if _, err := output(dir, tool, "-m", "-w", file, goccl); err != nil {
			return nil, err
		}
	}
	out, err := output(work, tool, "-m", "-incompatible", before, after)
	if err != nil {
		return nil, err
	}
	return changes(out), nil
}

// changes returns apidiff's lines on changes, each "./package.Name: what", but that of the version's number.
func changes(out string) []string {
	var lines []string
	for line := range strings.Lines(out) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if ok && !strings.HasPrefix(line, "./ccl.Version: ") {
			lines = append(lines, line)
		}
	}
	return lines
}

var identifier = regexp.MustCompile(`[A-Za-z_]\w*$`)

// allNamed reports it if a section of the changelog does not have the name of a thing that has changed incompatibly, in
// backquotes.
func allNamed(breaks []string, section string) error {
	var missing []string
	for _, line := range breaks {
		thing, _, _ := strings.Cut(line, ": ")
		name := identifier.FindString(strings.TrimSpace(thing))
		if name == "" || !regexp.MustCompile("`[^`]*\\b"+name+"\\b[^`]*`").MatchString(section) {
			missing = append(missing, line)
		}
	}
	if missing != nil {
		return fmt.Errorf("these changes break programs, and CHANGELOG.md does not name them in its newest release:\n\t%s",
			strings.Join(missing, "\n\t"))
	}
	return nil
}
