// Package doctor looks at what a job runs on, on every rank, and says what is wrong
// with it and what to do.
package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/machine"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl"
)

// Fingerprint is what decides how fast a process with this environment may be on the machine
// whose system is under root: the same on the same machine, so that two stored runs can be compared. Of
// the environment it has what report.Allowed lets through, and none of what differs
// from rank to rank.
func Fingerprint(root string, environ []string) map[string]string {
	f := map[string]string{
		"goccl":  ccl.Version,
		"go":     runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		"cpu":    machine.CPU(root),
		"cores":  strconv.Itoa(runtime.NumCPU()),
		"procs":  strconv.Itoa(runtime.GOMAXPROCS(0)),
		"memory": fmt.Sprintf("%d GiB", (machine.Memory(root)+1<<29)>>30),
	}
	for name, file := range map[string]string{
		"kernel":        "/proc/sys/kernel/osrelease",
		"governor":      "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
		"turbo off":     "/sys/devices/system/cpu/intel_pstate/no_turbo",
		"cgroup":        "/sys/fs/cgroup/cpu.max",
		"driver NVIDIA": "/sys/module/nvidia/version",
		"driver AMD":    "/sys/module/amdgpu/version",
	} {
		if v := machine.Word(root, file); v != "" {
			f[name] = v
		}
	}
	if v := chosen(machine.Word(root, "/sys/kernel/mm/transparent_hugepage/enabled")); v != "" {
		f["huge pages"] = v
	}
	for vendor, n := range machine.Devices(root) {
		f["devices "+vendor] = strconv.Itoa(n)
	}
	for _, l := range libraries(root, getenvOf(environ)) {
		f["library "+l.Name] = l.Version
	}
	nets, _ := os.ReadDir(filepath.Join(root, "/sys/class/net"))
	for _, n := range nets {
		if speed := machine.Word(root, "/sys/class/net/"+n.Name()+"/speed"); speed != "" && speed != "-1" {
			f["interface "+n.Name()] = speed + " Mbit/s"
		}
	}
	for _, e := range report.Allowed(environ) {
		if name, value, _ := strings.Cut(e, "="); !ofRank(name) {
			f["env "+name] = value
		}
	}
	return f
}

// Differences are the lines that say how two fingerprints differ.
func Differences(before, after map[string]string) (lines []string) {
	keys := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		if a, b := before[k], after[k]; a != b {
			lines = append(lines, fmt.Sprintf("%s: %s -> %s", k, orNone(a), orNone(b)))
		}
	}
	return lines
}

func orNone(s string) string { return cmp.Or(s, "none") }

// chosen is the one in brackets, as the kernel marks it: always [madvise] never.
func chosen(s string) string {
	_, rest, _ := strings.Cut(s, "[")
	one, _, _ := strings.Cut(rest, "]")
	return one
}

// getenvOf is os.Getenv for an environment.
func getenvOf(environ []string) func(string) string {
	return func(name string) string {
		for _, e := range slices.Backward(environ) {
			if v, ok := strings.CutPrefix(e, name+"="); ok {
				return v
			}
		}
		return ""
	}
}
