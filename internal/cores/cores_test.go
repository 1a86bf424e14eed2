package cores

import (
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// tree is a copy of sysfs that has these files.
func tree(files map[string]string) fs.FS {
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return root
}

// machine has sockets of so many cores, of which `share` in a row have one L3 and `node` in a row one NUMA node, each core
// with so many threads, numbered as Linux does: the first threads of all cores first.
func machine(sockets, cores, share, node, threads int) map[string]string {
	n := sockets * cores
	files := map[string]string{"cpu/online": fmt.Sprintf("0-%d", n*threads-1)}
	// list has the processors of k cores from the first-th on.
	list := func(first, k int) string {
		var parts []string
		for t := range threads {
			parts = append(parts, fmt.Sprintf("%d-%d", t*n+first, t*n+first+k-1))
		}
		return strings.Join(parts, ",")
	}
	for cpu := range n * threads {
		core := cpu % n
		dir := fmt.Sprintf("cpu/cpu%d/", cpu)
		files[dir+"topology/thread_siblings_list"] = list(core, 1)
		files[dir+"topology/core_siblings_list"] = list(core/cores*cores, cores)
		for i, c := range []struct {
			level int
			cpus  string
		}{{1, list(core, 1)}, {1, list(core, 1)}, {2, list(core, 1)}, {3, list(core/share*share, share)}} {
			files[fmt.Sprintf("%scache/index%d/level", dir, i)] = fmt.Sprint(c.level)
			files[fmt.Sprintf("%scache/index%d/shared_cpu_list", dir, i)] = c.cpus
		}
	}
	for i := range n / node {
		files[fmt.Sprintf("node/node%d/cpulist", i)] = list(i*node, node)
	}
	return files
}

func TestRead(t *testing.T) {
	memoryOnly := machine(2, 52, 52, 52, 1)
	memoryOnly["node/node2/cpulist"] = "" // a node with memory and no processor
	for _, tc := range []struct {
		name  string
		files map[string]string
		count int
		want  []Processor // some of them
	}{
		{"two sockets of 52 cores", machine(2, 52, 52, 52, 2), 208,
			[]Processor{{0, 0, 0, 0, 0}, {51, 51, 0, 0, 0}, {52, 52, 52, 52, 52}, {104, 0, 0, 0, 0}, {207, 103, 52, 52, 52}}},
		{"the same with memory-only nodes", memoryOnly, 104, []Processor{{103, 103, 52, 52, 52}}},
		{"two sockets of 64 cores, 8 to a cache", machine(2, 64, 8, 64, 1), 128,
			[]Processor{{7, 7, 0, 0, 0}, {8, 8, 8, 0, 0}, {127, 127, 120, 64, 64}}},
		{"four NUMA nodes in a socket", machine(1, 64, 64, 16, 1), 64, []Processor{{63, 63, 0, 48, 0}}},
		{"a laptop", machine(1, 4, 4, 4, 2), 8, []Processor{{3, 3, 0, 0, 0}, {7, 3, 0, 0, 0}}},
		{"nothing but the list", map[string]string{"cpu/online": "0,2"}, 2, []Processor{{0, -1, -1, -1, -1}, {2, -1, -1, -1, -1}}},
		{"a malformed list", map[string]string{"cpu/online": "x"}, 0, nil},
		{"a malformed level", map[string]string{"cpu/online": "0", "cpu/cpu0/cache/index0/level": "x", "cpu/cpu0/cache/index0/shared_cpu_list": "0"}, 1,
			[]Processor{{0, -1, -1, -1, -1}}},
		{"nothing at all", nil, 0, nil},
	} {
		got := Read(tree(tc.files))
		require.Len(t, got, tc.count, tc.name)
		for _, p := range tc.want {
			require.Contains(t, got, p, tc.name)
		}
	}
}

func TestFirstThreads(t *testing.T) {
	all := Read(tree(machine(1, 4, 4, 4, 2)))
	var cpus []int
	for _, p := range FirstThreads(all) {
		cpus = append(cpus, p.CPU)
	}
	require.Equal(t, []int{0, 1, 2, 3}, cpus)
	unknown := []Processor{{CPU: 0, Core: -1}, {CPU: 1, Core: -1}}
	require.Equal(t, unknown, FirstThreads(unknown))
}

func TestThisMachine(t *testing.T) {
	all := Read(System)
	if runtime.GOOS != "linux" || all == nil {
		t.Skip("hardware: no sysfs here")
	}
	require.GreaterOrEqual(t, len(all), runtime.NumCPU())
}

func TestParseList(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []int
		bad  bool
	}{
		{"0-3,8,10-11", []int{0, 1, 2, 3, 8, 10, 11}, false},
		{"5,1-2,2", []int{1, 2, 5}, false},
		{"", nil, false},
		{"3-1", nil, true}, {"-1", nil, true}, {"1-", nil, true}, {"0-65536", nil, true}, {"a", nil, true}, {"0-4294967295", nil, true},
	} {
		got, err := ParseList(tc.text)
		require.Equal(t, tc.bad, err != nil, tc.text)
		require.Equal(t, tc.want, got, tc.text)
	}
}

func FuzzParseList(f *testing.F) {
	for _, s := range []string{"0-3,8", "", "0", "1-0", "0-65535", ","} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, err := ParseList(s)
		if err != nil {
			return
		}
		if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Fatalf("%q: %v", s, list)
		}
		var again []string
		for _, cpu := range list {
			again = append(again, fmt.Sprint(cpu))
		}
		same, err := ParseList(strings.Join(again, ","))
		if err != nil || !slices.Equal(list, same) {
			t.Fatalf("%q: %v, %v", s, same, err)
		}
	})
}
