package imports

import (
	"go/ast"
	"slices"
	"strings"
)

var openers = []string{"Open", "OpenFile", "ReadFile", "Create", "CreateTemp", "WriteFile", "MkdirTemp", "Truncate", "DirFS", "OpenRoot", "OpenInRoot"}

// What a user names, and what others may have left there, is opened and written by internal/files alone: a name that is looked at and
// then opened are two questions, a pipe is waited for without end, and a link leads to any file. Each line here says why it need not be.
var openedByFiles = rule{
	name: "files are opened by internal/files", dirs: []string{"bench", "ccl/boot", "examples", "internal/auth", "train"},
	finds: func(src *source, bad func(string)) {
		if strings.HasPrefix(src.name, "examples/tutorial/") { // what a program of a user's looks like: it has no internal/files
			return
		}
		each(src.File, func(s *ast.SelectorExpr) {
			if isIdent(s.X, "os") && slices.Contains(openers, s.Sel.Name) {
				bad(src.name + " " + s.Sel.Name)
			}
		})
	},
	allowed: []string{
		// files of the kernel's
		"bench/internal/harness/rss_linux.go ReadFile",    // /proc/self
		"bench/internal/machine/cpu.go Open",              // /proc
		"bench/internal/machine/cpu.go ReadFile",          // /proc and /sys
		"bench/internal/machine/waited_linux.go ReadFile", // /proc/self
		"bench/internal/nvml/read.go ReadFile",            // /sys
		"examples/gpt/cores.go ReadFile",                  // /proc/self
		"examples/gpt/ready.go ReadFile",                  // /proc
		"internal/auth/peer_linux.go ReadFile",            // /proc
		// root's
		"bench/internal/doctor/library.go Open", // /etc/ld.so.conf.d
		// new names, which nobody can guess, of mode 0600 or 0700
		"bench/internal/compare/program.go MkdirTemp",
		"bench/internal/launch/share.go MkdirTemp",
		"bench/internal/report/figure.go MkdirTemp",
		"bench/internal/report/json.go CreateTemp",
		"ccl/boot/file.go CreateTemp",
		"ccl/boot/hallfile.go CreateTemp",
		"ccl/boot/storedir_unix.go MkdirTemp",
		"examples/internal/job/process.go MkdirTemp",
		// a generator, in the tree
		"examples/internal/mat/gen/main.go WriteFile",
	},
	planted: map[string]string{
		"bench/internal/a/a.go": "package a\nimport \"os\"\nfunc f() {\n\tos.ReadFile(x)\n\topen := os.Open\n\tfiles.Open(x, 1)\n\tos.Stat(x)\n}\n",
		"bench/a_test.go":       "package a\nimport \"os\"\nfunc f() { os.Create(x) }\n",
		"ccl/a.go":              "package a\nimport \"os\"\nfunc f() { os.Create(x) }\n",
		"train/ckpt/a.go":       "package a\nimport \"os\"\nvar f, _ = os.OpenFile(x, os.O_RDONLY, 0)\n",
		"examples/gpt/a.go":     "package a\nimport \"os\"\nvar f, _ = os.MkdirTemp(x, y)\nvar _ = os.WriteFile(x, nil, 0)\n",
	},
	want: []string{"bench/internal/a/a.go Open", "bench/internal/a/a.go ReadFile", "examples/gpt/a.go MkdirTemp", "examples/gpt/a.go WriteFile", "train/ckpt/a.go OpenFile"},
}
