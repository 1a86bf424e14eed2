package imports

import (
	"go/ast"
	"slices"
	"strings"
)

// At every port the number of handshakes under way is bounded: nothing serves one without a place among the port's strangers. And
// one function, auth.SameUser, says whose a peer is.
var bounded = rule{
	name: "strangers are bounded", dirs: []string{"."},
	finds: func(src *source, bad func(string)) {
		for _, d := range src.Decls {
			f, _ := d.(*ast.FuncDecl)
			admitted := f != nil && slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool { return isOf(p.Type, "auth", "Stranger") })
			each(d, func(s *ast.SelectorExpr) {
				switch {
				case isOf(s, "auth", "Server") && !admitted:
					bad(src.at(s) + " serves a handshake of no *auth.Stranger")
				case (s.Sel.Name == "SO_PEERCRED" || s.Sel.Name == "GetsockoptUcred") && !strings.HasPrefix(src.name, "internal/auth/"):
					bad(src.at(s) + " asks for the user of a peer")
				}
			})
		}
	},
	planted: map[string]string{
		"a.go":                  "package a\nfunc f(s *auth.Stranger) {\n\tauth.Server(c)\n}\nfunc g() {\n\tauth.Server(c)\n}\nvar x = unix.SO_PEERCRED\n",
		"internal/auth/peer.go": "package auth\nvar x = syscall.SO_PEERCRED\n",
	},
	want: []string{"a.go:6 serves a handshake of no *auth.Stranger", "a.go:8 asks for the user of a peer"},
}
