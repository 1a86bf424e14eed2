// Package machine finds out what bench runs on: the CPU, the memory, and whether
// there is an accelerator that lies idle.
package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/engine"
)

// Hint says, in one line, that an accelerator lies idle since no engine for it is
// compiled in, and the command that would use it; "" if there is nothing to say. A device whose
// driver has no file of its own is known by the vendor of its render node, since every vendor's GPUs
// have render nodes.
func Hint(root string, compiled, args []string) string {
	var names, tags []string
	nodes := renderNodes(root)
	for _, b := range engine.Backends() {
		var files []string
		if node := b.Hardware.Node; node == "" {
			files = nodes[b.Hardware.PCI]
		} else if _, err := os.Stat(filepath.Join(root, node)); err == nil {
			files = []string{node}
		}
		if len(files) > 0 && !slices.Contains(compiled, b.Name) {
			names = append(names, b.Hardware.Vendor+" ("+files[0]+")")
			tags = append(tags, b.Name)
		}
	}
	if tags == nil {
		return ""
	}
	command := "go run -tags " + strings.Join(tags, ",") + " ./bench"
	for _, a := range args {
		command += " " + Quote(a)
	}
	return "# There is an accelerator, " + strings.Join(names, " and ") +
		", but no engine for it is compiled in; this is the CPU engine. Try: " + command
}

// Quote writes an argument as a shell reads it.
func Quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=./,:+%@", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
