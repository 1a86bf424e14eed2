// Package cores tells which processors of this machine share a core, a last-level cache, a NUMA node and a socket, as Linux
// shows it in sysfs. Elsewhere, and where sysfs does not say, nothing is known.
package cores

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// System is where Linux shows the topology.
var System = os.DirFS("/sys/devices/system")

// most is more than any processor's number: a longer range in a list is malformed.
const most = 1 << 16

// Processor is one hardware thread. Core, Cache, Node and Socket are each the lowest processor that shares it, so they tell
// apart what they name, and nothing more. One that is not known is -1.
type Processor struct {
	CPU    int
	Core   int
	Cache  int // the last-level cache
	Node   int // the NUMA node
	Socket int
}

// Read lists the online processors in ascending order. root is System, or a copy of it. It returns nil where the topology is
// not known.
func Read(root fs.FS) []Processor {
	online, err := readList(root, "cpu/online")
	if err != nil {
		return nil
	}
	cores, caches, nodes, sockets := map[int]int{}, map[int]int{}, map[int]int{}, map[int]int{}
	lists, _ := fs.Glob(root, "node/node*/cpulist")
	for _, name := range lists {
		note(nodes, root, name)
	}
	all := make([]Processor, 0, len(online))
	for _, cpu := range online {
		dir := "cpu/cpu" + strconv.Itoa(cpu)
		// One of those that share a thing tells of all: a machine has hundreds of processors, and few sockets.
		if _, known := cores[cpu]; !known {
			note(cores, root, path.Join(dir, "topology/thread_siblings_list"))
		}
		if _, known := sockets[cpu]; !known {
			note(sockets, root, path.Join(dir, "topology/core_siblings_list"))
		}
		if _, known := caches[cpu]; !known {
			note(caches, root, lastCache(root, dir))
		}
		all = append(all, Processor{cpu, of(cores, cpu), of(caches, cpu), of(nodes, cpu), of(sockets, cpu)})
	}
	return all
}

// lastCache is the file that lists those that share the last-level cache of the processor in dir; "" if there is none.
func lastCache(root fs.FS, dir string) (name string) {
	highest := 0
	indexes, _ := fs.Glob(root, path.Join(dir, "cache/index*"))
	for _, index := range indexes {
		text, err := fs.ReadFile(root, path.Join(index, "level"))
		if err != nil {
			continue
		}
		if level, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && level > highest {
			highest, name = level, path.Join(index, "shared_cpu_list")
		}
	}
	return name
}

// note marks the processors that a file lists as sharing what the lowest of them has.
func note(lowest map[int]int, root fs.FS, name string) {
	list, err := readList(root, name)
	if err != nil || len(list) == 0 {
		return
	}
	for _, cpu := range list {
		lowest[cpu] = list[0]
	}
}

func of(lowest map[int]int, cpu int) int {
	if first, ok := lowest[cpu]; ok {
		return first
	}
	return -1
}

func readList(root fs.FS, name string) ([]int, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	return ParseList(strings.TrimSpace(string(text)))
}

// ParseList reads a list of processors as the kernel writes it, such as 0-3,8,10-11. The result is in ascending order.
func ParseList(text string) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err1 := strconv.ParseUint(low, 10, 32)
		to, err2 := strconv.ParseUint(high, 10, 32)
		if err1 != nil || err2 != nil || to < from || to >= most {
			return nil, fmt.Errorf("%q is no list of processors", text)
		}
		for cpu := from; cpu <= to; cpu++ {
			list = append(list, int(cpu))
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// FirstThreads keeps one processor of each core.
func FirstThreads(all []Processor) []Processor {
	seen := map[int]bool{}
	return slices.DeleteFunc(slices.Clone(all), func(p Processor) bool {
		if p.Core < 0 {
			return false
		}
		before := seen[p.Core]
		seen[p.Core] = true
		return before
	})
}
