package imports

import (
	"go/ast"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// The wall clock may be set, forwards and back, while a job runs. So nothing below these directories measures by it: a
// time.Time keeps a monotonic reading from time.Now on, which each of wallNames takes away.
var monotonic = []string{"ccl", "cuda", "gpu", "internal", "mpi", "rocm", "xpu"}

var wallNames = []string{"Unix", "UnixMicro", "UnixMilli", "UnixNano", "UTC", "ModTime", "CLOCK_REALTIME", "Gettimeofday"}

// wallClock lists the files that may use the wall clock, with the name that they use, and what for.
var wallClock = []struct{ file, name, why string }{
	{"ccl/boot/dial.go", "Unix", "a deadline that has passed"},
	{"ccl/boot/pmi.go", "Unix", "a deadline that has passed"},
	{"ccl/internal/fault/on.go", "UnixNano", "is printed"},
	{"ccl/internal/join/server.go", "Unix", "a deadline that has passed"},
	{"ccl/internal/tcp/open.go", "Unix", "a deadline that has passed"},
	{"ccl/trace.go", "UTC", "is printed"},
}

// wallReads lists "file name" for each file below dirs that names something of wallNames.
func wallReads(files fs.FS, dirs []string) (list []string, err error) {
	for _, dir := range dirs {
		if _, err := fs.Stat(files, dir); err != nil {
			continue
		}
		err = below(files, dir, func(src *source) {
			if strings.HasPrefix(src.name, "internal/tools/") {
				return
			}
			ast.Inspect(src.File, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if ok && slices.Contains(wallNames, s.Sel.Name) && !slices.Contains(list, src.name+" "+s.Sel.Name) {
					list = append(list, src.name+" "+s.Sel.Name)
				}
				return true
			})
		})
		if err != nil {
			return nil, err
		}
	}
	sort.Strings(list)
	return list, nil
}

func TestWallClock(t *testing.T) {
	list, err := wallReads(os.DirFS("../.."), monotonic)
	require.NoError(t, err)
	var listed []string
	for _, w := range wallClock {
		listed = append(listed, w.file+" "+w.name)
	}
	require.Equal(t, listed, list, "measure with time.Since of a time.Time that was never converted; the wall clock may be set back")
}

// The offence that made Close wait for as long as the clock was set back is found.
func TestWallClockFinds(t *testing.T) {
	files := fstest.MapFS{
		"ccl/a.go":      {Data: []byte("package a\nimport \"time\"\nfunc f(at int64) {\n\tat = time.Now().UnixNano()\n\ttime.Sleep(time.Second - time.Since(time.Unix(0, at)))\n}\n")},
		"ccl/b.go":      {Data: []byte("package a\nimport \"time\"\nfunc g(at time.Time) time.Duration { return time.Since(at) }\n")},
		"ccl/c_test.go": {Data: []byte("package a\nvar x = time.Now().Unix()\n")},
	}
	list, err := wallReads(files, []string{"ccl", "none"})
	require.NoError(t, err)
	require.Equal(t, []string{"ccl/a.go Unix", "ccl/a.go UnixNano"}, list)
}
