// Package imports holds no code, only the tests of the tree: which package may import which, how large types and files may
// be, and that each exported name has a comment.
package imports

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccl/goccl/test/cache"
	"github.com/stretchr/testify/require"
)

const module = "github.com/goccl/goccl"

// pkg is what `go list -json` says of one package.
type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string // its own
	Deps       []string // and all that they draw in
}

// rules says who may import what. A path that ends in /... stands
// for a tree; the standard library is always allowed.
var rules = []struct {
	who     string
	but     []string // packages of who that have a rule of their own
	direct  bool     // look at its own imports only, not at all that it links in
	allowed []string
	never   []string
	why     string
}{
	{
		who:     "internal/op",
		allowed: []string{},
		why:     "every package takes the numbers and names of calls from it",
	},
	{
		who:     "internal/algo",
		allowed: []string{module + "/internal/op"},
		why:     "a schedule is data: it knows no transport",
	},
	{
		who:     "internal/agree",
		allowed: []string{},
		why:     "what is explored has no transport and no clock",
	},
	{
		who:     "ccl/internal/plane/gone",
		direct:  true,
		allowed: []string{module + "/ccl/internal/call", module + "/ccl/internal/inject", module + "/ccl/internal/plane/event", module + "/internal/algo"},
		never:   []string{"net", "os", "sync", "context"},
		why:     "what decides has no clock, lock or connection: a model explores it, and stories tell it",
	},
	{
		who:     "internal/environ",
		allowed: []string{},
		why:     "the registry of variables is for every package",
	},
	{
		who:     "internal/files",
		allowed: []string{},
		why:     "what opens files is for every package",
	},
	{
		who:     "internal/engine",
		allowed: []string{module + "/internal/environ", module + "/internal/op"},
		why:     "the seam between package ccl and what moves data knows neither, and bench reads it",
	},
	{
		who:     "internal/reduce",
		allowed: []string{module + "/internal/op", "golang.org/x/..."},
		why:     "arithmetic knows no Comm: the engines and the training packages share it",
	},
	{
		who:     "internal/value",
		allowed: []string{},
		why:     "an encoding knows no Comm, and brings no module",
	},
	{
		who:     "ccl/boot",
		allowed: []string{module + "/ccl/internal/inject", module + "/internal/auth", module + "/internal/blame", module + "/internal/inet", module + "/internal/lived", module + "/internal/lobby", module + "/internal/relay", module + "/internal/subprocess", module + "/internal/environ", module + "/internal/files", module + "/internal/plain", module + "/internal/simhost", module + "/internal/slurm", "golang.org/x/..."},
		why:     "the bootstrap is usable without the engines",
	},
	{
		who:     "ccl/internal/plane/control",
		direct:  true,
		allowed: []string{module + "/..."},
		never:   []string{"net"},
		why:     "a frame is read from an auth.Stream and written to one",
	},
	{
		who:     "ccl",
		allowed: []string{module + "/...", "golang.org/x/..."},
		never:   []string{"testing", module + "/train/..."},
		why:     "a program that links ccl gets nothing else",
	},
	{
		who:     "bench",
		allowed: []string{module + "/...", "golang.org/x/...", "github.com/aclements/go-moremath/..."},
		never:   []string{"testing"},
		why:     "testify and the like are for tests",
	},
	{
		who:    "examples/...",
		direct: true,
		allowed: []string{module + "/ccl", module + "/ccl/boot", module + "/cuda", module + "/rocm", module + "/gpu", module + "/mpi", module + "/train/...",
			module + "/xla", module + "/xla/hlo", module + "/xla/nn", module + "/xla/nn/models",
			module + "/examples/internal/job", module + "/examples/internal/mat", module + "/examples/internal/perceptron", "golang.org/x/sys/cpu",
			module + "/internal/files", // one way to open what a user names, for all programs of this module
			module + "/internal/gpt"},  // the model, which the tests of train have, too
		why: "an example shows what a user's program can do",
	},
	{
		who:     "examples/internal/mat",
		allowed: []string{"golang.org/x/sys/cpu"},
		why:     "the arithmetic of a model knows no Comm",
	},
	{
		who:     "examples/internal/perceptron",
		allowed: []string{},
		why:     "the arithmetic of a model knows no Comm",
	},
	{
		who:     "internal/gpt",
		allowed: []string{},
		why:     "a model is arithmetic on slices: what it exchanges its caller does",
	},
	{
		who:    "train/...",
		but:    []string{"train/device", "train/fit/...", "train/offload"},
		direct: true,
		allowed: []string{module + "/ccl", module + "/ccl/boot", module + "/internal/files", module + "/internal/op", module + "/internal/reduce", module + "/train/...",
			"golang.org/x/text/unicode/norm"}, // the normal forms of a tokenizer
		never: []string{"testing"},
		why:   "training is built on what any program can use",
	},
	{
		who:     "train/offload",
		direct:  true,
		allowed: []string{module + "/ccl", module + "/internal/files", module + "/train/internal/raw", module + "/train/internal/same", "golang.org/x/sys/unix"},
		never:   []string{"testing"},
		why:     "a file on a disk knows no model; the room on the disk and the page cache are asked of the kernel",
	},
	{
		who:     "train/device",
		direct:  true,
		allowed: []string{module + "/ccl", module + "/cuda", module + "/train/optim", module + "/train/zero"},
		never:   []string{"testing"},
		why:     "training on a device is built on what any program can use",
	},
	{
		who:    "train/fit/...",
		direct: true,
		allowed: []string{module + "/ccl", module + "/internal/files", module + "/train/...", module + "/xla", module + "/xla/hlo", module + "/xla/nn/...", module + "/xla/nn",
			module + "/cuda"}, // the device and its stream, on which collectives and programs meet
		never: []string{"testing"},
		why:   "models are trained on what any program can use: programs of XLA beside the collectives of train",
	},
	{
		who:     "cuda",
		allowed: []string{module + "/gpu", module + "/internal/gpu", module + "/internal/lent", module + "/internal/backoff", module + "/internal/dl", module + "/internal/environ", module + "/include"},
		why:     "devices are usable without the engines",
	},
	{
		who:     "rocm",
		allowed: []string{module + "/gpu", module + "/internal/gpu", module + "/internal/lent", module + "/internal/backoff", module + "/internal/dl", module + "/internal/environ", module + "/include"},
		why:     "devices are usable without the engines",
	},
	{
		who:     "gpu",
		allowed: []string{module + "/internal/gpu", module + "/internal/lent", module + "/internal/backoff", module + "/internal/dl", module + "/internal/environ", module + "/include"},
		why:     "devices are usable without the engines",
	},
	{
		who:     "internal/gpu",
		allowed: []string{module + "/internal/dl", module + "/internal/environ", module + "/include"},
		why:     "the runtime of a device knows no engine",
	},
	{
		who:     "xla",
		direct:  true,
		allowed: []string{module + "/ccl", module + "/xla/hlo", module + "/internal/lent", module + "/internal/dl", module + "/internal/environ", module + "/include"},
		why:     "a compiler knows the buffers of collectives, and no engine",
	},
	{
		who:     "xla/hlo",
		allowed: []string{},
		why:     "a program is text",
	},
	{
		who:     "xla/nn",
		allowed: []string{module + "/xla/hlo"},
		why:     "a layer is a part of a program, whoever compiles and trains it",
	},
	{
		who:     "xla/nn/models",
		direct:  true,
		allowed: []string{module + "/xla/hlo", module + "/xla/nn", module + "/internal/files"},
		why:     "a model is a program, too, and a file says its sizes",
	},
	{
		who:     "mpi",
		allowed: []string{module + "/internal/backoff", module + "/internal/dl", module + "/internal/environ", module + "/internal/op", module + "/internal/signals", module + "/include"},
		why:     "MPI is usable without the engines",
	},
}

// cgoDirs may import "C". Everything in them has its build tag, but what needs cgo nowhere else.
var cgoDirs = []string{"ccl/internal/native", "ccl/internal/native/cside", "ccl/internal/native/oneccl", "mpi", "internal/dl", "internal/gpu", "internal/signals", "internal/sycl",
	"cuda", "rocm", "xpu", "xla", "capi", "test/fake/environ", "test/gpu/budget"}

// match reports whether path is pattern or, for a pattern that ends in /..., in its tree.
func match(pattern, path string) bool {
	tree, isTree := strings.CutSuffix(pattern, "/...")
	return path == tree || isTree && strings.HasPrefix(path, tree+"/")
}

func matchAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, path) })
}

// list returns every package of the module and all that they import, as built with env.
func list(t *testing.T, env ...string) map[string]pkg {
	t.Helper()
	cache.Whole()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", module+"/...")
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())

	all := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all[p.ImportPath] = p
	}
}

func TestImports(t *testing.T) {
	for _, env := range [][]string{
		{"GOOS=linux", "GOARCH=amd64"},
		{"GOOS=linux", "GOARCH=arm64"},
		{"GOOS=darwin", "GOARCH=arm64"},
		{"GOOS=windows", "GOARCH=amd64"},
		{"GOOS=linux", "GOARCH=amd64", "GOFLAGS=-tags=noasm"},
	} {
		t.Run(strings.Join(env, " "), func(t *testing.T) {
			all := list(t, env...)
			for _, rule := range rules {
				found := false
				for path, p := range all {
					if !match(module+"/"+rule.who, path) || matchAny(rule.but, strings.TrimPrefix(path, module+"/")) {
						continue
					}
					found = true
					imports := p.Deps
					if rule.direct {
						imports = p.Imports
					}
					for _, imported := range imports {
						bad := matchAny(rule.never, imported) ||
							!all[imported].Standard && !matchAny(rule.allowed, imported)
						if bad {
							t.Errorf("%s imports %s: %s", path, imported, rule.why)
						}
					}
				}
				if !found {
					t.Errorf("no package %s: has it moved? Its rule is in this test", rule.who)
				}
			}
		})
	}
}

func TestCgo(t *testing.T) {
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		files++
		// Parsed, not listed: go list leaves out what this build's tags do.
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			if spec.Path.Value == `"C"` && !slices.Contains(cgoDirs, filepath.ToSlash(rel)) {
				t.Errorf("%s imports \"C\": cgo is for %s alone", path, strings.Join(cgoDirs, ", "))
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NotZero(t, files)
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, path string
		want          bool
	}{
		{"a/b", "a/b", true},
		{"a/b", "a/b/c", false},
		{"a/b/...", "a/b", true},
		{"a/b/...", "a/b/c", true},
		{"a/b/...", "a/bc", false},
	} {
		require.Equal(t, tc.want, match(tc.pattern, tc.path), "%s %s", tc.pattern, tc.path)
	}
}

// importsBelow adds what the files below dir import, whatever platform and tags they are for, tests excluded.
func importsBelow(files fs.FS, dir string, all map[string][]string) error {
	return below(files, dir, func(src *source) {
		who := module + "/" + path.Dir(src.name)
		all[who] = append(all[who], []string{}...)
		for _, spec := range src.Imports {
			if imported := strings.Trim(spec.Path.Value, `"`); !slices.Contains(all[who], imported) {
				all[who] = append(all[who], imported)
			}
		}
	})
}
