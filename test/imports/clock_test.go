package imports

import (
	"go/ast"
	"slices"
	"strings"
)

// The wall clock may be set, forwards and back, while a job runs. So nothing below these directories measures by it: a
// time.Time keeps a monotonic reading from time.Now on, which each of wallNames takes away.
var monotonic = []string{"ccl", "cuda", "gpu", "internal", "mpi", "rocm", "xpu"}

var wallNames = []string{"Unix", "UnixMicro", "UnixMilli", "UnixNano", "UTC", "ModTime", "CLOCK_REALTIME", "Gettimeofday"}

// What measures a time takes time.Since of a time.Time that was never converted. The wall clock made Close wait for as long as it
// was set back.
var monotonicTime = rule{
	name: "time is monotonic", dirs: monotonic,
	finds: func(src *source, bad func(string)) {
		if strings.HasPrefix(src.name, "internal/tools/") {
			return
		}
		each(src.File, func(s *ast.SelectorExpr) {
			if slices.Contains(wallNames, s.Sel.Name) {
				bad(src.name + " " + s.Sel.Name)
			}
		})
	},
	allowed: []string{
		"ccl/boot/dial.go Unix",             // a deadline that has passed
		"ccl/boot/pmi.go Unix",              // the same
		"ccl/internal/fault/on.go UnixNano", // is printed
		"ccl/internal/join/server.go Unix",  // a deadline that has passed
		"ccl/internal/tcp/open.go Unix",     // the same
		"ccl/trace.go UTC",                  // is printed
		"internal/value/time.go UTC",        // a program's time, on its way to other ranks
		"internal/value/time.go Unix",       // the same
	},
	planted: map[string]string{
		"ccl/a.go":      "package a\nimport \"time\"\nfunc f(at int64) {\n\tat = time.Now().UnixNano()\n\ttime.Sleep(time.Second - time.Since(time.Unix(0, at)))\n}\n",
		"ccl/b.go":      "package a\nimport \"time\"\nfunc g(at time.Time) time.Duration { return time.Since(at) }\n",
		"ccl/c_test.go": "package a\nvar x = time.Now().Unix()\n",
	},
	want: []string{"ccl/a.go Unix", "ccl/a.go UnixNano"},
}
