package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// reading is who may name what leads to the memory of another rank, as file:function below ccl/internal. So no read of it
// escapes Reach.Read, which looks afterwards whether the memory's owner had given up.
var reading = []struct {
	name string // a function, a constant or, behind a dot, a field or method
	who  []string
	why  string
}{
	{"SYS_PROCESS_VM_READV", []string{"shm/readmem_linux.go:ReadMemory"}, "one function asks the kernel"},
	{"ProcessVMReadv", nil, "one function asks the kernel"},
	{".ReadMemory", []string{"reach/read.go:copyFrom", "reach/read.go:Readable", "mail/inlet.go:pull", "mail/inlet.go:owned"},
		"Readable and owned read numbers that no call owns; pull counts only if owned says so afterwards"},
	{".copyFrom", []string{"reach/read.go:Read"}, "what was read counts only after Read has looked"},
	{".here", []string{"reach/offer.go:touch", "reach/read.go:At", "reach/read.go:Offered", "reach/read.go:Read"},
		"where a Source lies only Read hands out"},
	{".mapped", []string{"reach/offer.go:touch", "reach/read.go:Offered"}, "where a Source lies only Read hands out"},
	{".touch", []string{"reach/offer.go:Write", "reach/read.go:Find"}, "where a Source lies only Read hands out; Write only writes"},
	{".View", []string{
		"cpu/comm.go:makeComm", "cpu/comm.go:countOut", "links/pipegrow.go:mapLarger", "links/pipeplace.go:PipeFrom",
		"links/pipeplace.go:PipesOf", "plane/share.go:Make", "plane/share.go:Map", "plane/share.go:View", "plane/watch/leave.go:Leave", "plane/watch/pendingexit.go:completeExit", "plane/watch/pulse.go:show", "ranktest/ranktest.go:Of",
		"reach/views.go:mapped", "shm/slices.go:addPage", "shm/slices.go:Reap"},
		"the engine maps memory of its own, and ledgers of slices; slices of other ranks only package reach"},
	{".Make", []string{"links/pipegrow.go:makeLarger", "links/pipeplace.go:PipeTo"}, "the same"},
	{".Map", []string{"links/pipeplace.go:row", "reach/lend.go:request", "rounds/staging.go:memory"}, "the same"},
}

// readers lists the functions below ccl/internal that name something, as file:function.
func readers(files fs.FS, name string) (list []string, err error) {
	selected := strings.HasPrefix(name, ".")
	err = below(files, "ccl/internal", func(src *source) {
		for _, d := range src.Decls {
			body := ast.Node(d)
			if f, ok := d.(*ast.FuncDecl); ok {
				if f.Body == nil {
					continue
				}
				body = f.Body
			}
			ast.Inspect(body, func(n ast.Node) bool {
				found := false
				switch n := n.(type) {
				case *ast.SelectorExpr:
					found = n.Sel.Name == strings.TrimPrefix(name, ".")
				case *ast.Ident:
					found = !selected && n.Name == name
				}
				at := fmt.Sprintf("%s:%s", strings.TrimPrefix(src.name, "ccl/internal/"), nameOf(d))
				if found && !slices.Contains(list, at) {
					list = append(list, at)
				}
				return true
			})
		}
	})
	return list, err
}

// lastWord is the last statement of a function, as a call: what it returns.
func lastWord(text []byte, function string) string {
	file, err := parser.ParseFile(token.NewFileSet(), "f.go", text, parser.SkipObjectResolution)
	if err != nil {
		return err.Error()
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != function || len(f.Body.List) == 0 {
			continue
		}
		r, ok := f.Body.List[len(f.Body.List)-1].(*ast.ReturnStmt)
		if !ok || len(r.Results) != 1 {
			return "no return of one value"
		}
		if c, ok := r.Results[0].(*ast.CallExpr); ok {
			if s, ok := c.Fun.(*ast.SelectorExpr); ok {
				return s.Sel.Name
			}
		}
		return "no method"
	}
	return "no such function"
}

func TestReadingOtherRanks(t *testing.T) {
	files := os.DirFS("../..")
	for _, rule := range reading {
		list, err := readers(files, rule.name)
		require.NoError(t, err)
		if strings.Contains(rule.name, "here") { // plane counts the ranks that are here
			list = slices.DeleteFunc(list, func(at string) bool { return path.Dir(at) == "plane" })
		}
		slices.Sort(list)
		want := slices.Clone(rule.who)
		slices.Sort(want)
		require.ElementsMatch(t, want, list, "%s: %s", rule.name, rule.why)
	}
	text, err := fs.ReadFile(files, "ccl/internal/reach/read.go")
	require.NoError(t, err)
	require.Equal(t, "InterruptedNow", lastWord(text, "Read"), "Read looks last")
}

// A function that reads by itself is found, and a Read that does not look.
func TestReadingFinds(t *testing.T) {
	planted := fstest.MapFS{
		"ccl/internal/rounds/x.go": {Data: []byte("package rounds\n\nfunc f() { shm.ReadMemory(1, nil, 0) }\n\nfunc g() { p, _ := c.mapped(1, nil) }\n")},
		"ccl/internal/links/y.go":  {Data: []byte("package links\n\nvar v = unix.SYS_PROCESS_VM_READV\n")},
	}
	for name, want := range map[string][]string{
		".ReadMemory": {"rounds/x.go:f"}, ".mapped": {"rounds/x.go:g"}, "SYS_PROCESS_VM_READV": {"links/y.go:the file"}, ".View": nil,
	} {
		list, err := readers(planted, name)
		require.NoError(t, err)
		require.Equal(t, want, list, name)
	}
	require.Equal(t, "no method", lastWord([]byte("package p\n\nfunc Read() error { return nil }\n"), "Read"))
	require.Equal(t, "no such function", lastWord([]byte("package p\n"), "Read"))
}
