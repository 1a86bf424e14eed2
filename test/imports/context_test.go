package imports

import (
	"go/ast"
	"slices"
)

// refusing are the functions that refuse a nil context, by one that stands before: what takes one calls one of them with it.
var refusing = []string{"noContext", "callable", "block", "makeOwn", "beginValue", "gatherValues", "split", "usable", "env", "Launched"}

// A nil context is an error everywhere in the API: a function that takes one from a user asks, and so does each of refusing.
var contexts = rule{
	name: "contexts are asked for", dirs: []string{"ccl", "ccl/boot"}, alone: true,
	finds: func(s *source, bad func(string)) {
		for _, d := range s.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name == "noContext" || !takesContext(f) {
				continue
			}
			allowed := refusing
			switch at := slices.Index(refusing, f.Name.Name); {
			case at >= 0:
				allowed = refusing[:at]
			case !f.Name.IsExported() || f.Recv != nil && !ast.IsExported(receiver(f.Recv.List[0].Type)):
				continue
			}
			asks := false
			each(f.Body, func(c *ast.CallExpr) {
				switch fun := c.Fun.(type) {
				case *ast.Ident:
					asks = asks || slices.Contains(allowed, fun.Name)
				case *ast.SelectorExpr:
					asks = asks || slices.Contains(allowed, fun.Sel.Name)
				}
			})
			if !asks {
				bad(s.name + ": " + f.Name.Name)
			}
		}
	},
	planted: map[string]string{"ccl/x.go": `package ccl
func Asks(ctx context.Context) { noContext(ctx) }
func Passes(ctx context.Context, c *Comm) error { return c.block(ctx, nil) }
func Trusts(ctx context.Context) { <-ctx.Done() }
func inner(ctx context.Context) { <-ctx.Done() }
func (c *Comm) block(ctx context.Context) { return c.split(ctx) }
func (c *Comm) split(ctx context.Context) { return c.block(ctx) }
func (c *Comm) Method(ctx context.Context) { <-ctx.Done() }
func (c *hidden) Method(ctx context.Context) { <-ctx.Done() }
func None(f func(context.Context)) {}
`},
	want: []string{"ccl/x.go: Method", "ccl/x.go: Trusts", "ccl/x.go: block"},
}

// takesContext reports whether some parameter of f is a context.
func takesContext(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		return isOf(p.Type, "context", "Context")
	})
}
