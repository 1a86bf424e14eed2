package imports

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// What keeps the engine's packages readable: small types, made of parts that have names; small files, tests.
// What is larger today is listed with how large: it may only shrink, and the list with it.
const (
	mostFields  = 15 // with those that are promoted
	mostMethods = 40 // the same
	mostDeep    = 1  // an embedded type embeds none
	mostLines   = 500
)

// records are types whose fields are what a caller fills in or reads. One that is embedded counts as one field.
var records = []string{"ccl.Error", "ccl.Options", "ccl.traceLine", "internal/op.Call", "ccl/internal/plane/status.Status", "ccl/internal/plane/status.Wait",
	"ccl/internal/tuning.Family",
	"bench/internal/doctor.facts",
	"bench/internal/option.Options",
	"bench/internal/report.Config",
	"bench/internal/report.File",
	"bench/internal/report.Row",
	"bench/internal/report.Setup",
	"bench/internal/report.theirConfig",
	"bench/internal/trace.line",
	"internal/engine.Backend",
	"train/fit.Options",
	"train/fit/internal/units.Options",
	"train/fit/loop.Options",
	"train/data/bpe.step",
	"train/zero.Options",
	"test/peers.testCase",
	"xla/nn/models.GPT2",
	"xla/nn/models.Llama",
}

// large are the types that have more fields or methods than they should, or embed what they should
// not. Of the methods of ccl.Comm, and of the Job, Site and Member of plane, about a third are
// functions that take one of them first.
var large = map[string]shape{
	"bench/internal/compare.lineChange": {12, 10, 2, ""},
	"bench/internal/compare.part":       {7, 5, 2, ""},
	"bench/internal/harness.plan":       {5, 41, 2, "bench/internal/option.Options"},
	"bench/internal/harness.session":    {18, 46, 0, ""},
	"bench/internal/harness.test":       {22, 28, 1, "bench/internal/coll.Collective"},
	"bench/internal/launch.Order":       {22, 5, 1, "bench/internal/option.Job"},
	"bench/internal/launch.Plan":        {40, 25, 2, "bench/internal/option.Job"},
	"bench/internal/launch.thread":      {4, 6, 2, ""},
	"capi.settings":                     {3, 7, 1, "ccl.Options"},
	"capi.store":                        {12, 18, 1, "ccl/boot.Stored"},
	"ccl.Comm":                          {15, 70, 0, ""},
	"ccl.mpiWorld":                      {8, 43, 1, "mpi.Comm"},
	"ccl/boot.hostRelay":                {28, 28, 2, ""},
	"ccl/boot.rootServer":               {25, 37, 2, ""},
	"ccl/boot.spawn":                    {27, 11, 1, ""},
	"ccl/internal/cpu.Comm":             {13, 50, 1, ""},
	"ccl/internal/native.end":           {15, 42, 0, ""},
	"ccl/internal/plane.Job":            {14, 53, 0, ""},
	"ccl/internal/plane.Member":         {9, 59, 0, ""},
	"ccl/internal/plane.Site":           {5, 48, 0, ""},
	"ccl/internal/region.Region":        {14, 41, 0, ""},
	"examples/gpt.config":               {44, 23, 1, "internal/gpt.Config"},
	"examples/gpt.narrow":               {40, 60, 1, "train/zero.Model"},
	"examples/gpt.progress":             {16, 5, 1, "internal/gpt.Config"},
	"examples/gpt.saver":                {12, 10, 2, "train/resume.Saver"},
	"examples/gpt.trainer":              {26, 33, 0, ""},
	"examples/finetune.config":          {23, 4, 1, "train/fit/loop.Flags"},
	"examples/gpt2.config":              {17, 16, 1, "train/fit/loop.Flags"},
	"internal/agree.Party":              {21, 47, 1, ""},
	"internal/gpt.Net":                  {18, 31, 1, ""},
	"internal/gpu/gputest.Runtime":      {15, 28, 1, "internal/gpu.Runtime"},
	"internal/op.Call":                  {36, 22, 2, ""},
	"internal/op.Head":                  {18, 3, 1, ""},
	"mpi.Comm":                          {6, 61, 0, ""},
	"test/model.shrinkState":            {16, 2, 0, ""},
	"test/model.shrinking":              {23, 16, 1, ""},
	"train/ddp.Reducer":                 {17, 17, 0, ""},
	"train/resume.Saver":                {11, 6, 1, "train/ckpt.Saver"},
	"train/zero.Model":                  {36, 60, 0, ""},
	"train/zero.unit":                   {22, 2, 0, ""},
	"xla/hlo.Value":                     {9, 95, 0, ""}, // an operation is a method
}

// seams are what other packages embed: it is made for that.
var seams = []string{"internal/engine.Lacking", "internal/goranks.Full"}

// makers are the files of ccl that may know CPUs by name: the table of tuning, and what finds its row.
var makers = []string{"ccl/internal/machine/cpuid_amd64.go", "ccl/internal/tuning/tuning.go"}

// makerNames is how code asks who made the CPU.
var makerNames = []string{"GenuineIntel", "AuthenticAMD", ".Intel", ".AMD", ".Maker"}

// layoutNames is how code asks this process where data lie, which the ranks of a host must agree on: plane.LayoutOf is to be asked.
var layoutNames = []string{"CPU.Layout", "CPU.WholeTwo", "CPU.SwapFrom", "CPU.Ring", "CPU.StreamTo", "CPU.StageSharedTo", "CPU.SentRing", "CPU.SentMost"}

// layouts are the files that do.
var layouts = []string{"ccl/internal/plane/watch/board.go"}

// shape is what a type has: fields and methods with those of the types that it embeds, how deep these embed others, and the first
// one of another package of this module.
type shape struct {
	fields, methods, deep int
	across                string
}

// written is a type as its file has it.
type written struct {
	fields   int             // without the embedded ones
	embedded []string        // the types of those, by directory and name; of other modules by name alone
	methods  map[string]bool // its own, and functions whose first argument it is
	// isInterface: it is a field where it is embedded, whatever its package.
	isInterface bool
	isDeclared  bool // a file has it, and not only functions that name it
}

// declarations are the types in the files of the repository, whatever platform they are for, by directory and name.
func declarations(files fs.FS) (map[string]*written, error) {
	all := map[string]*written{}
	at := func(t string) *written {
		if all[t] == nil {
			all[t] = &written{methods: map[string]bool{}}
		}
		return all[t]
	}
	err := below(files, ".", func(src *source) {
		dir := path.Dir(src.name)
		imported := map[string]string{}
		for _, i := range src.Imports {
			from := strings.Trim(i.Path.Value, `"`)
			as := path.Base(from)
			if i.Name != nil {
				as = i.Name.Name
			}
			imported[as] = from
		}
		for _, decl := range src.Decls {
			d, ok := decl.(*ast.FuncDecl)
			switch {
			case !ok:
			case d.Recv != nil:
				at(dir + "." + receiver(d.Recv.List[0].Type)).methods[d.Name.Name] = true
			case len(d.Type.Params.List) > 0: // a method by another name: f(t, x) is t.f(x)
				if of := receiver(d.Type.Params.List[0].Type); of != "?" {
					at(dir + "." + of).methods[functionOf+d.Name.Name] = true
				}
			}
		}
		for t := range specs[*ast.TypeSpec](src.File) {
			was := at(dir + "." + t.Name.Name)
			was.isDeclared = true
			switch s := t.Type.(type) {
			case *ast.InterfaceType:
				for _, m := range s.Methods.List {
					for _, name := range m.Names {
						was.methods[name.Name] = true
					}
				}
				was.isInterface = true
			case *ast.StructType:
				of := written{methods: was.methods, isDeclared: true}
				for _, f := range s.Fields.List {
					if len(f.Names) == 0 {
						of.embedded = append(of.embedded, embeddedIn(f.Type, dir, imported))
					}
					of.fields += len(f.Names)
				}
				if of.fields+len(of.embedded) >= was.fields+len(was.embedded) {
					*was = of
				}
			}
		}
	})
	maps.DeleteFunc(all, func(_ string, d *written) bool { return !d.isDeclared }) // a type such as int, or an argument of a function
	return all, err
}

// functionOf begins the name of a function among the methods of the type that it takes first: what
// embeds the type does not get it.
const functionOf = "func "

// bareType is t without a star and type arguments.
func bareType(t ast.Expr) ast.Expr {
	switch t := t.(type) {
	case *ast.StarExpr:
		return bareType(t.X)
	case *ast.IndexExpr:
		return bareType(t.X)
	case *ast.IndexListExpr:
		return bareType(t.X)
	}
	return t
}

// embeddedIn is the type of an embedded field in a file of dir.
func embeddedIn(t ast.Expr, dir string, imported map[string]string) string {
	switch t := bareType(t).(type) {
	case *ast.Ident:
		return dir + "." + t.Name
	case *ast.SelectorExpr:
		if from, ok := strings.CutPrefix(imported[t.X.(*ast.Ident).Name], module+"/"); ok {
			return from + "." + t.Sel.Name
		}
		return t.Sel.Name
	}
	return "?"
}

// shapeOf is the shape of a type of these, and the names of all its methods. An interface is one field, and adds its methods. What is
// of another module is one field.
func shapeOf(all map[string]*written, t string, within int) (s shape, methods map[string]bool) {
	d := all[t]
	s.fields, methods = d.fields, map[string]bool{}
	for m := range d.methods {
		methods[m] = true
	}
	for _, e := range d.embedded {
		if all[e] == nil || all[e].fields+len(all[e].embedded) == 0 && len(all[e].methods) == 0 || within > 20 {
			s.fields++
			continue
		}
		if all[e].isInterface {
			s.fields++
			for m := range all[e].methods {
				methods[m] = true
			}
			continue
		}
		in, more := shapeOf(all, e, within+1)
		if slices.Contains(records, e) { // with as many fields as its callers need
			in.fields = 1
		}
		s.fields += in.fields
		s.deep = max(s.deep, 1+in.deep)
		if s.across == "" && packageOf(e) != packageOf(t) && !slices.Contains(seams, e) {
			s.across = e
		}
		if s.across == "" {
			s.across = in.across
		}
		for m := range more {
			if !strings.HasPrefix(m, functionOf) {
				methods[m] = true
			}
		}
	}
	s.methods = len(methods)
	return s, methods
}

// packageOf is the directory of a type.
func packageOf(t string) string { return t[:max(strings.LastIndexByte(t, '.'), 0)] }

// receiver is the name of a method's type.
func receiver(t ast.Expr) string {
	if id, ok := bareType(t).(*ast.Ident); ok {
		return id.Name
	}
	return "?"
}

// sources calls f for each Go file below dir but tests and what is generated.
func sources(files fs.FS, dir string, f func(name string, text []byte) error) error {
	return fs.WalkDir(files, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			if err == nil && d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil || strings.HasPrefix(string(text), "// Code generated") {
			return err
		}
		return f(name, text)
	})
}

// misshapen are the types below dir that are not as they should be, nor as known says.
func misshapen(files fs.FS, dir string, known map[string]shape) (bad []string, err error) {
	all, err := declarations(files)
	for t := range all {
		if !strings.HasPrefix(t, dir) || all[t].isInterface {
			continue
		}
		s, _ := shapeOf(all, t, 0)
		fields := s.fields
		if slices.Contains(records, t) {
			fields = 0
		}
		was, listed := known[t]
		ill := fields > mostFields || s.methods > mostMethods || s.deep > mostDeep || s.across != ""
		says := fmt.Sprintf("%s has %d fields and %d methods", t, s.fields, s.methods)
		switch {
		case s.deep == 1:
			says += ", embeds"
		case s.deep > 1:
			says += fmt.Sprintf(", embeds %d deep", s.deep)
		}
		if s.across != "" {
			says += ", and another package's " + s.across
		}
		switch {
		case listed && !ill:
			bad = append(bad, says+", which is well: take it from the list")
		case listed && s != was:
			bad = append(bad, fmt.Sprintf("%s: the list has %+v, which may only shrink", says, was))
		case ill && !listed:
			bad = append(bad, fmt.Sprintf("%s: at most %d, %d and %d deep, of its own package", says, mostFields, mostMethods, mostDeep))
		}
	}
	for t := range known {
		if _, ok := all[t]; !ok {
			bad = append(bad, t+" is gone: take it from the list")
		}
	}
	slices.Sort(bad)
	return bad, err
}

// untested lists the packages below dir that have code, and no tests.
func untested(files fs.FS, dir string) (list []string, err error) {
	err = below(files, dir, func(src *source) {
		in := path.Dir(src.name)
		tests, _ := fs.Glob(files, in+"/*_test.go")
		if len(tests) == 0 && !slices.Contains(list, in) && slices.ContainsFunc(src.Decls, func(d ast.Decl) bool {
			g, ok := d.(*ast.GenDecl)
			return !ok || g.Tok != token.IMPORT
		}) {
			list = append(list, in)
		}
	})
	return list, err
}

// No file of the repository has as many lines as mostLines.
var shortFiles = rule{
	name: "files are short", dirs: []string{"."},
	finds: func(src *source, bad func(string)) {
		if n := strings.Count(string(src.text), "\n"); n >= mostLines {
			bad(fmt.Sprintf("%s has %d lines: less than %d", src.name, n, mostLines))
		}
	},
	planted: map[string]string{
		"ccl/a/long.go":      "package a\n" + strings.Repeat("\n", mostLines),
		"ccl/a/long_test.go": "package a\n" + strings.Repeat("\n", 2*mostLines),
		"ccl/a/gen.go":       "// Code generated by x. DO NOT EDIT.\npackage a\n" + strings.Repeat("\n", mostLines),
	},
	want: []string{"ccl/a/long.go has 501 lines: less than 500"},
}

// askForMaker and askForLayout find the files whose code has one of those names.
var (
	askForMaker  = asking("few ask who made the CPU", makerNames, makers, "tuning.CPU.Maker")
	askForLayout = asking("few ask this process where data lie", layoutNames, layouts, "tuning.CPU.Ring")
)

func asking(name string, names, allowed []string, planted string) rule {
	return rule{
		name: name, dirs: []string{"ccl"}, allowed: allowed,
		finds: func(src *source, bad func(string)) {
			for line := range strings.Lines(string(src.text)) {
				code, _, _ := strings.Cut(line, "//")
				if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(code, name) }) {
					bad(src.name)
				}
			}
		},
		planted: map[string]string{
			"ccl/a.go": "package a\n// " + planted + "\nvar x = " + planted + "\n",
			"ccl/b.go": "package a\n// " + planted + "\nvar x = tuning.CPU.FetchAhead\n",
		},
		want: []string{"ccl/a.go"},
	}
}

// Types are small, and packages have tests.
func TestShape(t *testing.T) {
	repo := os.DirFS("../..")
	bad, err := misshapen(repo, "", large)
	require.NoError(t, err)
	require.Empty(t, bad)
	bad, err = untested(repo, "ccl")
	require.NoError(t, err)
	require.Empty(t, bad, "packages without tests")
}

// Each rule finds what is planted.
func TestShapeFinds(t *testing.T) {
	var b strings.Builder
	b.WriteString("package a\n\ntype T struct {\n")
	for i := range mostFields + 1 {
		fmt.Fprintf(&b, "\tf%d, g%d int\n", i, i)
	}
	b.WriteString("}\n\ntype G[E any] struct{}\n")
	for i := range mostMethods + 1 {
		fmt.Fprintf(&b, "func (g *G[E]) m%d() {}\n", i)
	}
	var functions strings.Builder
	for i := range mostMethods {
		fmt.Fprintf(&functions, "func f%d(s *Small, o Outer, n int) {}\n\nfunc g%d(n int, s *Small) {}\n", i, i)
	}
	files := fstest.MapFS{
		"ccl/a/a.go":       {Data: []byte(b.String())},
		"ccl/a/a_linux.go": {Data: []byte("package a\n\nfunc (g *G[E]) m0() {}\n")}, // another file's, counted once
		"ccl/a/embeds.go": {Data: []byte("package a\n\nimport (\n\t\"sync\"\n\n\t\"" + module + "/internal/o\"\n\t\"" + module + "/ccl/b\"\n)\n\n" +
			"type One struct {\n\tsync.Mutex\n\to\n\tx int\n}\n\ntype o struct{ y int }\n\nfunc (*o) M() {}\n\n" +
			"type Deep struct {\n\t*One\n\tz int\n}\n\nfunc (Deep) N() {}\n\n" +
			"type Across struct {\n\to.P\n\tx int\n}\n\ntype Beside struct {\n\tb.P\n}\n\ntype I interface{ A(); B() }\n\ntype ByI struct {\n\tI\n\tx, y int\n}\n\nfunc (ByI) C() {}\n\ntype Many struct {\n\tT\n\ta, b int\n}\n\nfunc (Many) M() {}\n\n" +
			"type Methods struct {\n\tG[int]\n\tx int\n}\n\nfunc (Methods) More() {}\n")},
		"ccl/a/funcs.go":  {Data: []byte("package a\n\ntype Small struct{ x int }\n\nfunc (*Small) own() {}\n\ntype Outer struct{ Small }\n" + functions.String())},
		"d/d.go":          {Data: []byte("package d\n\ntype Wide struct{ a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p int }\n")},
		"internal/o/o.go": {Data: []byte("package o\n\ntype P struct{ a int }\n\nfunc (P) M() {}\n")},
		"ccl/a/a_test.go": {Data: []byte("package a\n")},
		"ccl/a/doc.go":    {Data: []byte("//\npackage a\n\nimport _ \"embed\"\n")},
		"ccl/b/b.go":      {Data: []byte("package b\n\ntype P struct{ a int }\n\nfunc (P) M() {}\n")},
		"ccl/c/doc.go":    {Data: []byte("package c\n\nimport _ \"embed\"\n")}, // which has nothing to test
	}
	limits := ": at most 15, 40 and 1 deep, of its own package"
	bad, err := misshapen(files, "ccl", nil)
	require.NoError(t, err)
	require.Equal(t, []string{
		"ccl/a.Across has 2 fields and 1 methods, embeds, and another package's internal/o.P" + limits,
		"ccl/a.Beside has 1 fields and 1 methods, embeds, and another package's ccl/b.P" + limits,
		"ccl/a.Deep has 4 fields and 2 methods, embeds 2 deep" + limits,
		"ccl/a.G has 0 fields and 41 methods" + limits,
		"ccl/a.Many has 34 fields and 1 methods, embeds" + limits,
		"ccl/a.Methods has 1 fields and 42 methods, embeds" + limits,
		"ccl/a.Small has 1 fields and 41 methods" + limits,
		"ccl/a.T has 32 fields and 0 methods" + limits,
	}, bad)
	bad, err = misshapen(files, "ccl", map[string]shape{
		"ccl/a.Across": {2, 1, 1, "internal/o.P"}, "ccl/a.Beside": {1, 1, 1, "ccl/b.P"}, "ccl/a.ByI": {3, 2, 0, ""}, "ccl/a.Deep": {4, 2, 3, ""}, "ccl/a.G": {0, 41, 0, ""}, "ccl/a.Many": {33, 1, 1, ""}, "ccl/a.Methods": {1, 42, 1, ""},
		"ccl/a.T": {32, 0, 0, ""}, "ccl/a.U": {16, 0, 0, ""}, "ccl/a.One": {2, 1, 1, ""}, "ccl/a.Small": {1, 41, 0, ""},
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"ccl/a.ByI has 3 fields and 3 methods, which is well: take it from the list",
		"ccl/a.Deep has 4 fields and 2 methods, embeds 2 deep: the list has {fields:4 methods:2 deep:3 across:}, which may only shrink",
		"ccl/a.Many has 34 fields and 1 methods, embeds: the list has {fields:33 methods:1 deep:1 across:}, which may only shrink",
		"ccl/a.One has 3 fields and 1 methods, embeds, which is well: take it from the list",
		"ccl/a.U is gone: take it from the list",
	}, bad)
	bad, err = misshapen(files, "d", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"d.Wide has 16 fields and 0 methods" + limits}, bad)
	bad, err = untested(files, "ccl")
	require.NoError(t, err)
	require.Equal(t, []string{"ccl/b"}, bad)
}
