// Package machine finds out what bench runs on: the CPU, the memory, and whether
// there is an accelerator that lies idle.
package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Accelerator is a kind of device and the build tag of the engine for it.
type Accelerator struct {
	Name string // NVIDIA
	File string // /dev/nvidia0
	Tag  string // nccl
}

// intel is Intel's PCI vendor number, as sysfs has it.
const intel = "0x8086"

// Accelerators are the kinds of device that are there, under root, which is / but
// in tests. Intel's is known by the vendor of its render node, since every vendor's
// GPUs have render nodes.
func Accelerators(root string) []Accelerator {
	var found []Accelerator
	exists := func(file string) bool {
		_, err := os.Stat(filepath.Join(root, file))
		return err == nil
	}
	if exists("/dev/nvidia0") {
		found = append(found, Accelerator{"NVIDIA", "/dev/nvidia0", "nccl"})
	}
	if exists("/dev/kfd") {
		found = append(found, Accelerator{"AMD", "/dev/kfd", "rccl"})
	}
	nodes, _ := filepath.Glob(filepath.Join(root, "/dev/dri/renderD*"))
	for _, node := range nodes {
		name := filepath.Base(node)
		vendor, _ := os.ReadFile(filepath.Join(root, "/sys/class/drm", name, "device/vendor"))
		if strings.TrimSpace(string(vendor)) == intel {
			found = append(found, Accelerator{"Intel", "/dev/dri/" + name, "oneccl"})
			break
		}
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
