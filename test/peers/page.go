package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A page is a file of docs/measured: what was measured on the CPUs of one maker. Each case has a
// section, so that a case is kept as it ends, and one that is measured again takes the place of its
// last measurement.
//
//	## allreduce-2
//
//	15 interleaved rounds, 23 November 2026, commit 8e79df6, AMD EPYC, 2 processors, Linux 6.18, go1.26
//
//	(the table, as code)
type page struct {
	path string
	head string    // up to the first section
	all  []section // in the order of the file
}

type section struct{ name, text string } // text without the line of its name

const sectionMark = "\n## "

// openPage reads the page of this machine's maker in dir; there need be none yet.
func openPage(dir string) (*page, error) {
	name := maker()
	p := &page{path: filepath.Join(dir, strings.ToLower(name)+".md")}
	text, err := os.ReadFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		p.head = "# Measured on CPUs of " + name + "\n"
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p.parse(string(text))
	return p, nil
}

func (p *page) parse(text string) {
	parts := strings.Split(text, sectionMark)
	p.head = parts[0]
	for _, part := range parts[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		p.all = append(p.all, section{name, rest})
	}
}

func (p *page) String() string {
	var b strings.Builder
	b.WriteString(p.head)
	for _, s := range p.all {
		b.WriteString(sectionMark + s.name + "\n" + s.text)
	}
	return b.String()
}

// keep puts a case's table into its section, and saves the page.
func (p *page) keep(name, table string, rounds int, commit string) error {
	about := fmt.Sprintf("%d interleaved rounds, %s, commit %s, %s", rounds, time.Now().Format("2 January 2006"), commit,
		machine())
	s := section{name, "\n" + about + "\n\n```\n" + table + "```\n"}
	if i := slices.IndexFunc(p.all, func(old section) bool { return old.name == name }); i >= 0 {
		p.all[i] = s
	} else {
		p.all = append(p.all, s)
	}
	temporary := p.path + ".new"
	if err := os.WriteFile(temporary, []byte(p.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, p.path)
}

// has reports whether a case was measured at commit, with at least so many rounds.
func (p *page) has(name string, rounds int, commit string) bool {
	for _, s := range p.all {
		var n int
		if s.name == name && strings.Contains(s.text, ", commit "+commit+", ") {
			_, err := fmt.Sscanf(strings.TrimSpace(s.text), "%d interleaved rounds", &n)
			return err == nil && n >= rounds
		}
	}
	return false
}

// commit names what is measured: the short hash of HEAD, with a plus where the tree differs from it.
func commit() (string, error) {
	hash, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("which commit is this? git rev-parse: %w", err)
	}
	name := strings.TrimSpace(string(hash))
	if exec.Command("git", "diff", "--quiet", "HEAD", "--", "*.go", "*.s", "go.mod").Run() != nil {
		name += "+"
	}
	return name, nil
}
