package imports

import (
	"go/ast"
	"io/fs"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// framed are the packages that send frames between processes. They keep no connection but an auth.Stream, which only a
// handshake returns: so no frame is read or written that it does not protect.
var framed = []string{"ccl/boot", "ccl/internal/plane/control", "ccl/internal/mail"}

// unshaken are the fields of these packages that hold a connection all the same.
var unshaken = []string{
	"ccl/boot.acceptor.conns", // to be closed
	"ccl/boot.branch.conn",    // to know it by when it ends
	"ccl/boot.pmi.conn",       // with the launcher
}

// connections lists the fields of a package's types that hold a net.Conn, or one of its kinds.
func connections(files fs.FS, dir string) (list []string, err error) {
	err = in(files, dir, func(src *source) {
		for spec := range declared(src.File) {
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range s.Fields.List {
				holds := false
				ast.Inspect(f.Type, func(n ast.Node) bool {
					if n, ok := n.(*ast.SelectorExpr); ok {
						holds = holds || slices.Contains([]string{"Conn", "TCPConn", "UnixConn"}, n.Sel.Name) && n.X.(*ast.Ident).Name == "net"
					}
					_, isFunc := n.(*ast.FuncType)
					return !isFunc
				})
				if holds && len(f.Names) == 0 {
					list = append(list, dir+"."+spec.Name.Name)
				}
				for _, n := range f.Names {
					if holds {
						list = append(list, dir+"."+spec.Name.Name+"."+n.Name)
					}
				}
			}
		}
	})
	return list, err
}

// declared yields the types of a file.
func declared(file *ast.File) func(yield func(*ast.TypeSpec) bool) {
	return func(yield func(*ast.TypeSpec) bool) {
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && !yield(t) {
					return
				}
			}
		}
	}
}

func TestStreams(t *testing.T) {
	var list []string
	for _, dir := range framed {
		fields, err := connections(os.DirFS("../.."), dir)
		require.NoError(t, err)
		list = append(list, fields...)
	}
	require.ElementsMatch(t, unshaken, list, "frames go over an auth.Stream")
	taken, err := readers(os.DirFS("../.."), ".Take")
	require.NoError(t, err)
	require.Equal(t, []string{"tcp/open.go:takeConn"}, taken, "data alone leave their auth.Stream")
}

// A connection that is kept without its handshake is found, embedded or in a list.
func TestStreamsFinds(t *testing.T) {
	planted := fstest.MapFS{
		"ccl/boot/x.go": {Data: []byte("package boot\n\ntype a struct{ up *auth.Stream; f func(net.Conn) }\n\ntype b struct{ net.Conn }\n\ntype c struct{ all []*net.TCPConn; n int }\n")},
	}
	list, err := connections(planted, "ccl/boot")
	require.NoError(t, err)
	require.Equal(t, []string{"ccl/boot.b", "ccl/boot.c.all"}, list)
}
