package imports

import (
	"go/ast"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// unbounded lists what serves handshakes without a place among a port's strangers, and what asks the kernel for the user of a
// peer other than by auth.SameUser: as file:line below dir.
func unbounded(files fs.FS, dir string) (bad []string, err error) {
	err = below(files, dir, func(src *source) {
		for _, d := range src.Decls {
			f, _ := d.(*ast.FuncDecl)
			admitted := f != nil && slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool { return isOf(p.Type, "auth", "Stranger") })
			ast.Inspect(d, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				switch {
				case !ok:
				case isOf(s, "auth", "Server") && !admitted:
					bad = append(bad, src.at(s)+" serves a handshake of no *auth.Stranger")
				case (s.Sel.Name == "SO_PEERCRED" || s.Sel.Name == "GetsockoptUcred") && !strings.HasPrefix(src.name, "internal/auth/"):
					bad = append(bad, src.at(s)+" asks for the user of a peer")
				}
				return true
			})
		}
	})
	slices.Sort(bad)
	return bad, err
}

// isOf reports whether e is name of package pkg, or a pointer to it.
func isOf(e ast.Expr, pkg, name string) bool {
	if p, ok := e.(*ast.StarExpr); ok {
		e = p.X
	}
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// At every port the number of handshakes under way is bounded, and one function says whose a peer is.
func TestStrangersAreBounded(t *testing.T) {
	bad, err := unbounded(os.DirFS("../.."), ".")
	require.NoError(t, err)
	require.Empty(t, bad)
}

func TestStrangersAreBoundedFinds(t *testing.T) {
	files := fstest.MapFS{
		"a.go":                  {Data: []byte("package a\nfunc f(s *auth.Stranger) {\n\tauth.Server(c)\n}\nfunc g() {\n\tauth.Server(c)\n}\nvar x = unix.SO_PEERCRED\n")},
		"internal/auth/peer.go": {Data: []byte("package auth\nvar x = syscall.SO_PEERCRED\n")},
	}
	bad, err := unbounded(files, ".")
	require.NoError(t, err)
	require.Equal(t, []string{"a.go:6 serves a handshake of no *auth.Stranger", "a.go:8 asks for the user of a peer"}, bad)
}
