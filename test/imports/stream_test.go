package imports

import (
	"go/ast"
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"
)

// framed are the packages that send frames between processes. They keep no connection but an auth.Stream, which only a
// handshake returns: so no frame is read or written that it does not protect.
var framed = []string{"ccl/boot", "ccl/internal/plane/control", "ccl/internal/mail"}

// They keep no field that holds a net.Conn, or one of its kinds.
var framedByStreams = rule{
	name: "frames go over streams", dirs: framed, alone: true,
	finds: func(src *source, bad func(string)) {
		for spec := range specs[*ast.TypeSpec](src.File) {
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range s.Fields.List {
				holds := false
				ast.Inspect(f.Type, func(n ast.Node) bool {
					if n, ok := n.(*ast.SelectorExpr); ok {
						holds = holds || isOf(n, "net", "Conn") || isOf(n, "net", "TCPConn") || isOf(n, "net", "UnixConn")
					}
					_, isFunc := n.(*ast.FuncType)
					return !isFunc
				})
				at := path.Dir(src.name) + "." + spec.Name.Name
				if holds && len(f.Names) == 0 {
					bad(at)
				}
				for _, n := range f.Names {
					if holds {
						bad(at + "." + n.Name)
					}
				}
			}
		}
	},
	allowed: []string{
		"ccl/boot.acceptor.conns", // to be closed
		"ccl/boot.branch.conn",    // to know it by when it ends
		"ccl/boot.pmi.conn",       // with the launcher
	},
	// One that is kept without its handshake, embedded or in a list.
	planted: map[string]string{
		"ccl/boot/x.go": "package boot\n\ntype a struct{ up *auth.Stream; f func(net.Conn) }\n\ntype b struct{ net.Conn }\n\ntype c struct{ all []*net.TCPConn; n int }\n",
	},
	want: []string{"ccl/boot.b", "ccl/boot.c.all"},
}

// Data alone leave their auth.Stream.
func TestStreamsAreTaken(t *testing.T) {
	taken, err := readers(os.DirFS("../.."), ".Take")
	require.NoError(t, err)
	require.Equal(t, []string{"tcp/open.go:takeConn"}, taken)
}
