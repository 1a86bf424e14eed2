package imports

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/environ"
)

// registry is the one place that has the names of goccl's variables.
const registry = "internal/environ"

// variable is a string that is such a name, or sets one, or begins all of them.
var variable = regexp.MustCompile(`^GOCCL_[A-Z0-9_]*(=\S*)?$`)

// No code but the registry knows a variable of goccl by its name, tests and what only they use excepted: whoever reads one asks its
// entry, which refuses what makes no sense.
var registered = rule{
	name: "variables are registered", dirs: []string{"."},
	finds: func(src *source, bad func(string)) {
		if in := path.Dir(src.name); in == registry || strings.HasPrefix(src.name, "test/") || strings.HasSuffix(in, "/gputest") || strings.HasSuffix(in, "/xlatest") || strings.HasSuffix(in, "/ccltest") {
			return
		}
		each(src.File, func(n *ast.BasicLit) {
			if s, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && variable.MatchString(s) {
				bad(src.at(n) + " names " + s)
			}
		})
		each(src.File, func(n *ast.CallExpr) {
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "Getenv" || f.Sel.Name == "LookupEnv") && len(n.Args) == 1 && ofEntry(n.Args[0]) {
				bad(src.at(n) + " reads an entry by its name")
			}
		})
	},
	planted: map[string]string{
		"ccl/a.go": `package ccl
import "os"
const name = "GOCCL_HIDDEN"
var a = os.Getenv("GOCCL_RANK") + os.Getenv(environ.Rank.Name) + environ.Rank.Text(os.Getenv)
var b = []string{"GOCCL_RANK=" + a, "GOCCL_RANK=%d", "set GOCCL_RANK=3", "RANK"}
func f() bool { return strings.HasPrefix(a, "GOCCL_") }
`,
		"ccl/a_test.go":                "package ccl\nvar a = \"GOCCL_RANK\"\n",
		"internal/environ/registry.go": "package environ\nvar a = \"GOCCL_RANK\"\n",
		"test/lab/main.go":             "package main\nvar a = \"GOCCL_RANK\"\n",
	},
	want: []string{"ccl/a.go:3 names GOCCL_HIDDEN", "ccl/a.go:4 names GOCCL_RANK", "ccl/a.go:4 reads an entry by its name",
		"ccl/a.go:5 names GOCCL_RANK=", "ccl/a.go:5 names GOCCL_RANK=%d", "ccl/a.go:6 names GOCCL_"},
}

// ofEntry reports whether an expression has something of the registry in it.
func ofEntry(e ast.Expr) (found bool) {
	each(e, func(id *ast.Ident) { found = found || id.Name == "environ" })
	return found
}

// spelt are the names in a text.
var spelt = regexp.MustCompile(`\bGOCCL_[A-Z0-9_]*[A-Z0-9]\b`)

// planted are names that only tests and documents have, to show what becomes of them.
var planted = []string{"GOCCL_RNAK", "GOCCL_SZIE", "GOCCL_CHEKSUM", "GOCCL_CHECKSUM_", "GOCCL_REQUIRE_SECERT", "GOCCL_REQUIRESECRET", "GOCCL_SECRETS", "GOCCL_SECRET_FLIE", "GOCCL_SECRETS_DIR", "GOCCL_TRAEC", "GOCCL_HOST_ID", "GOCCL_SHMREAD",
	"GOCCL_MY_KEY", "GOCCL_PORT", "GOCCL_SERVICE_HOST", "GOCCL_SERVICE_PORT_RANK", "GOCCL_PORT_29500_TCP_ADDR", "GOCCL_COLOUR", "GOCCL_HIDDEN",
	"GOCCL_PASSWD", "GOCCL_PROXY", "GOCCL_WORLD_SIZE", "GOCCL_X"}

// macros are the names of the interface for C.
var macros []string

// unknown lists the names in a text that neither the registry nor this test has.
func unknown(name, text string) (bad []string) {
	if path.Ext(name) == ".h" || path.Ext(name) == ".c" {
		return nil // macros
	}
	if macros == nil {
		header, err := os.ReadFile("../../include/goccl.h")
		if err != nil {
			return []string{err.Error()}
		}
		macros = spelt.FindAllString(string(header), -1)
	}
	for _, v := range spelt.FindAllString(text, -1) {
		if !slices.Contains(macros, v) && environ.Known(v) == nil && !strings.HasPrefix(v, "GOCCL_TEST_") && !slices.Contains(planted, v) {
			bad = append(bad, v)
		}
	}
	return bad
}

// Every variable that code, tests, scripts and documents name is in the registry, and so in docs/environment.md.
func TestVariablesAreKnown(t *testing.T) {
	seen := 0
	require.NoError(t, fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		switch path.Ext(name) {
		case ".go", ".md", ".sh", ".yaml", ".yml":
		default:
			if d.IsDir() || path.Base(name) != "Makefile" && path.Base(name) != "Dockerfile" {
				return nil
			}
		}
		text, err := fs.ReadFile(os.DirFS("../.."), name)
		seen++
		if name != "CHANGELOG.md" && name != "test/imports/environ_test.go" { // which tell of what there was, and of what there is not
			require.Empty(t, unknown(name, string(text)), name)
		}
		return err
	}))
	require.Greater(t, seen, 500)
	require.Equal(t, []string{"GOCCL_LONELY"}, unknown("a.md", "GOCCL_RANK, GOCCL_LONELY=1, GOCCL_TEST_X, GOCCL_BENCH_*"))
}
