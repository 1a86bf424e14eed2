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

// Accelerator is a kind of device and the build tag of the engine for it.
type Accelerator struct {
	Name string // NVIDIA
	File string // /dev/nvidia0
	Tag  string // nccl
}

// Accelerators are the kinds of device that are there, under root, which is / but
// in tests. One whose driver has no file of its own is known by the vendor of its render node,
// since every vendor's GPUs have render nodes.
func Accelerators(root string) (found []Accelerator) {
	nodes := renderNodes(root)
	for _, b := range engine.Backends() {
		file := b.Hardware.Node
		if file != "" {
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				continue
			}
		} else if of := nodes[b.Hardware.PCI]; len(of) > 0 {
			file = of[0]
		} else {
			continue
		}
		found = append(found, Accelerator{b.Hardware.Vendor, file, b.Name})
	}
	return found
}

// Hint says, in one line, that an accelerator lies idle since no engine for it is
// compiled in, and the command that would use it; "" if there is nothing to say.
func Hint(root string, compiled, args []string) string {
	var names, tags []string
	for _, a := range Accelerators(root) {
		if !slices.Contains(compiled, a.Tag) {
			names = append(names, a.Name+" ("+a.File+")")
			tags = append(tags, a.Tag)
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
