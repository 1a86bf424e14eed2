package imports

import (
	"os"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inside is the direction of imports inside ccl/internal: each package, and which others there it may import. A package
// imports only packages above it in the table, so no two know each other.
var inside = []struct {
	who   string
	knows string
	why   string
}{
	{"tuning", "", "numbers depend on the CPU alone"},
	{"inject", "", "any package may have a point at which a test injects a fault"},
	{"machine", "inject tuning", "what this process runs on, whoever else shares it"},
	{"ordered", "machine", "stores and loads know nothing of what they publish"},
	{"proc", "", "what the kernel says of a process depends on no job"},
	{"tcp", "inject", "connections know no ranks' calls"},
	{"shm", "inject", "memory knows neither ranks nor calls"},
	{"call", "inject shm", "a call is described without regard to how it is made"},
	{"mail", "call inject ordered proc shm", "messages know neither Comms nor how a stream is made"},
	{"group", "call inject tcp", "what all ranks agreed on, whatever they do with it"},
	{"region", "call inject ordered tuning", "a layout knows not who waits for what it holds"},
	{"plane/event", "call inject shm", "events and their order, however they travel"},
	{"plane/status", "call inject shm", "where ranks stand, whoever asks"},
	{"plane/control", "call inject plane/event plane/status", "frames between hosts, whatever becomes of them"},
	{"plane/gone", "call inject plane/event", "what decides has no clock, no lock and no connection"},
	{"plane/watch", "call machine plane/control plane/event plane/gone plane/status proc region shm tuning", "what is seen, whatever becomes of it"},
	{"plane", "plane/control plane/event plane/gone plane/status plane/watch call inject group mail ordered proc region shm tcp tuning", "the control plane moves no data"},
	{"ranktest", "call group plane region shm", "ranks of one process, for the tests of what is built on them"},
	{"reach", "call inject ordered plane proc region shm tuning", "whose memory lies where, whatever it is wanted for"},
	{"rounds", "call inject ordered plane reach region shm tuning", "collectives of one host know no connections"},
	{"links", "call inject ordered plane reach region shm tcp tuning", "messages know no rounds"},
	{"shrink", "call inject group links plane region tcp", "an agreement runs over links"},
	{"join", "call inject group plane plane/watch shm tcp tuning", "a job begins before any call"},
	{"cpu", "call inject group join links mail ordered plane plane/event plane/watch proc reach region rounds shm shrink tcp tuning", "a Comm puts the parts together"},
	{"scale", "", "a simulation runs the engine's code in its tests alone"},
	{"native", "ordered native/cside", "a library is one engine, and knows no other"},
	{"native/cside", "", "the C side of native"},
	{"native/oneccl", "ordered native/cside", "a library is one engine, and knows no other"},
	{"mpiengine", "ordered", "a library is one engine, and knows no other"},
}

const internal = module + "/ccl/internal/"

// against lists the imports inside ccl/internal that the table does not allow, the packages that it does not have, and its rows
// that no package needs any more. imports has what each package imports, by path.
func against(imports map[string][]string) (bad []string) {
	allowed := map[string][]string{}
	for _, row := range inside {
		allowed[row.who] = strings.Fields(row.knows)
	}
	for path, list := range imports {
		who, ok := strings.CutPrefix(path, internal)
		if !ok {
			continue
		}
		knows, listed := allowed[who]
		if !listed {
			bad = append(bad, who+" is not in the table")
		}
		for _, imported := range list {
			if to, ok := strings.CutPrefix(imported, internal); ok && listed && !slices.Contains(knows, to) {
				bad = append(bad, who+" imports "+to)
			}
		}
	}
	for _, row := range inside {
		if _, ok := imports[internal+row.who]; !ok {
			bad = append(bad, row.who+" is gone: take it from the table")
		}
	}
	sort.Strings(bad)
	return bad
}

// order lists the rows that know a package below them in the table, which alone could make two know each other.
func order() (bad []string) {
	at := map[string]int{}
	for i, row := range inside {
		at[row.who] = i
	}
	for i, row := range inside {
		for _, to := range strings.Fields(row.knows) {
			if j, ok := at[to]; !ok || j >= i && !strings.HasPrefix(to, row.who+"/") {
				bad = append(bad, row.who+" knows "+to)
			}
		}
	}
	return bad
}

func TestDirection(t *testing.T) {
	require.Empty(t, order(), "the table itself")
	imports := map[string][]string{}
	files := os.DirFS("../..")
	require.NoError(t, importsBelow(files, "ccl/internal", imports))
	require.Empty(t, against(imports))
}

// An import against the direction is found, as are a package without a row and a row without a package.
func TestDirectionFinds(t *testing.T) {
	imports := map[string][]string{}
	for _, row := range inside {
		imports[internal+row.who] = nil
	}
	require.Empty(t, against(imports))
	imports[internal+"proc"] = []string{"unsafe", internal + "cpu", module + "/internal/algo"}
	imports[internal+"cpu"] = []string{internal + "plane"}
	imports[internal+"stranger"] = []string{internal + "proc"}
	imports[module+"/ccl"] = []string{internal + "cpu"}
	delete(imports, internal+"tcp")
	require.Equal(t, []string{"proc imports cpu", "stranger is not in the table", "tcp is gone: take it from the table"}, against(imports))
}
