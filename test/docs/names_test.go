package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documented are the packages whose names the documents use, as their directories.
var documented = []string{
	"ccl", "ccl/boot", "ccl/ccltest", "gpu", "cuda", "rocm", "xpu", "mpi", "xla", "xla/hlo", "xla/nn", "xla/nn/models",
	"train/amp", "train/ckpt", "train/ckpt/disks", "train/data", "train/data/loader", "train/data/pack", "train/data/bpe", "train/data/chat", "train/data/megatron", "train/data/text", "train/ddp", "train/device", "train/elastic", "train/fit", "train/fit/loop", "train/fit/lora", "train/fit/machine", "train/fit/quant", "train/fit/sample", "train/fit/update", "train/resume", "train/history", "train/history/events", "train/history/grads", "train/history/timeline",
	"train/mesh", "train/mirror", "train/optim", "train/optim/whole", "train/outer", "train/pp", "train/quant", "train/sp", "train/tp", "train/zero",
}

// exported are the exported names of packages: "ccl.Comm" and "ccl.Comm.Split" alike, methods and fields too.
type exported map[string]bool

// typed reports whether a package has a type of that name.
func (e exported) typed(name string) bool {
	for _, dir := range documented {
		if e[filepath.Base(dir)+"."+name] {
			return true
		}
	}
	return false
}

// has reports whether a package has what Type.Name stands for, or an alias of that name, whose methods are elsewhere.
func (e exported) has(of, name string) bool {
	for _, dir := range documented {
		if in := filepath.Base(dir) + "." + of; e[in+"."+name] || e[in+anything] {
			return true
		}
	}
	return false
}

// anything stands for the names of a type that is an alias.
const anything = ".*"

// names reads the exported names of the documented packages, of the files for all platforms and with all tags.
func names(t *testing.T) exported {
	all := exported{}
	for _, dir := range documented {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, d := range file.Decls {
				all.declared(filepath.Base(dir), d)
			}
		}
	}
	return all
}

// declared adds what a declaration of package in exports.
func (e exported) declared(in string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		e[in+"."+name] = true
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					e[in+"."+n.Name] = true
				}
			case *ast.TypeSpec:
				e[in+"."+s.Name.Name] = true
				if s.Assign.IsValid() {
					e[in+"."+s.Name.Name+anything] = true
				}
				var fields *ast.FieldList
				switch t := s.Type.(type) {
				case *ast.StructType:
					fields = t.Fields
				case *ast.InterfaceType:
					fields = t.Methods
				default:
					continue
				}
				for _, f := range fields.List {
					for _, n := range f.Names {
						e[in+"."+s.Name.Name+"."+n.Name] = true
					}
				}
			}
		}
	}
}

// receiver is the name of a method's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

var (
	inPackage = regexp.MustCompile("`(\\w+)\\.([A-Z]\\w*)((?:\\.[A-Z]\\w*)?)\\b")
	ofType    = regexp.MustCompile("`([A-Z]\\w*)\\.([A-Z]\\w*)\\b")
)

// unknown lists the Go names of a page that no package has: `ccl.AllSum`, `Comm.Fork`. What looks like the name of another
// project, since goccl has no such package and no such type, is none of them.
func unknown(text string, all exported) (bad []string) {
	text = fence.ReplaceAllString(text, "")
	for _, m := range inPackage.FindAllStringSubmatch(text, -1) {
		for _, dir := range documented {
			if name := m[1] + "." + m[2] + m[3]; filepath.Base(dir) == m[1] && !all[name] && !all[m[1]+"."+m[2]+anything] {
				bad = append(bad, name)
			}
		}
	}
	for _, m := range ofType.FindAllStringSubmatch(text, -1) {
		if name := m[1] + "." + m[2]; all.typed(m[1]) && !all.has(m[1], m[2]) {
			bad = append(bad, name)
		}
	}
	return bad
}

// Each name of a package of goccl that a document has in backquotes exists.
func TestNamesExist(t *testing.T) {
	all := names(t)
	found := 0
	for path, text := range pages(t) {
		if filepath.Base(path) == "CHANGELOG.md" || strings.Contains(filepath.ToSlash(path), "/interop/empi/") {
			continue // what is gone, too; and the names of empi, whose packages are called as ours
		}
		require.Empty(t, unknown(text, all), path)
		found += len(inPackage.FindAllString(text, -1))
	}
	require.Greater(t, found, 200)
	require.Equal(t, []string{"ccl.AllSum", "ccl.Comm.Fork", "Comm.Fork", "Options.Tiemout"},
		unknown("`ccl.AllSum` `ccl.Comm.Fork` `Comm.Fork(x)` `Options.Tiemout` `ccl.Comm.Split` `Comm.Err`, `Place.Node` `Stream.Observe` `torch.Tensor` `Foreign.Name` `ccl.h`", all))
}
