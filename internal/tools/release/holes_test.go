package main

import (
	"strings"
	"testing"
)

// No module of the tree requires a version with a known hole, and a planted one is found.
func TestHoles(t *testing.T) {
	root, err := output("", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		t.Skip("hardware: no git checkout")
	}
	if n, err := noHoles(strings.TrimSpace(root)); err != nil || n < 10 {
		t.Errorf("%d modules, %v", n, err)
	}
	const old = "module x\n\ngo 1.25.0\n\nrequire (\n\tgolang.org/x/net v0.35.0 // indirect\n\tgolang.org/x/sys v0.40.0\n)\n"
	err = holes("x/go.mod", []byte(old))
	if err == nil || !strings.Contains(err.Error(), "x/go.mod requires golang.org/x/net v0.35.0, which has CVE-") {
		t.Errorf("got %v", err)
	}
	if err := holes("x/go.mod", []byte(strings.Replace(old, "v0.35.0", whole["golang.org/x/net"].version, 1))); err != nil {
		t.Error(err)
	}
}
