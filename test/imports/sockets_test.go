package imports

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// binds are what makes a listener or a connection.
var binds = []string{"Listen", "ListenConfig", "ListenTCP", "ListenPacket", "ListenUDP", "ListenIP", "ListenMulticastUDP",
	"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "Dialer"}

// One function binds every listener of the library, in the range that GOCCL_PORTS names, and one makes its
// connections, whose errors tell this host's trouble from the other's. Sockets that never leave a host are
// none of theirs.
var ownSockets = rule{
	name: "inet binds and dials", dirs: []string{"."},
	finds: func(src *source, bad func(string)) {
		in := path.Dir(src.name)
		if in == "internal/inet" || strings.HasPrefix(in, "test/") || strings.HasPrefix(in, "examples/") || strings.HasPrefix(in, "interop/") {
			return
		}
		local := map[ast.Node]bool{}
		each(src.File, func(c *ast.CallExpr) {
			if len(c.Args) > 0 {
				if l, ok := c.Args[0].(*ast.BasicLit); ok && l.Kind == token.STRING && strings.HasPrefix(l.Value, `"unix`) {
					local[c.Fun] = true
				}
			}
		})
		each(src.File, func(s *ast.SelectorExpr) {
			web := isOf(s, "http", "ListenAndServe") || isOf(s, "http", "ListenAndServeTLS")
			if web || isOf(s, "net", s.Sel.Name) && slices.Contains(binds, s.Sel.Name) && !local[s] {
				bad(src.at(s) + " makes a socket by itself: " + s.Sel.Name)
			}
		})
	},
	planted: map[string]string{
		"ccl/a.go": `package ccl
var l, _ = net.Listen("tcp", ":0")
var c net.ListenConfig
var u, _ = net.Listen("unix", "@a")
var v, _ = net.ListenUnix("unix", at)
var d = net.Dialer{Timeout: 1}
var e, _ = net.Listen(network, "@a")
var f = http.ListenAndServe(":80", nil)
var g, _ = inet.Listen(":0")
`,
		"ccl/a_test.go":           "package ccl\nvar l, _ = net.Listen(\"tcp\", \":0\")\n",
		"internal/inet/listen.go": "package inet\nvar l, _ = net.Listen(\"tcp\", \":0\")\n",
	},
	want: []string{"ccl/a.go:2 makes a socket by itself: Listen", "ccl/a.go:3 makes a socket by itself: ListenConfig", "ccl/a.go:6 makes a socket by itself: Dialer",
		"ccl/a.go:7 makes a socket by itself: Listen", "ccl/a.go:8 makes a socket by itself: ListenAndServe"},
}
