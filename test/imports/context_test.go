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

// refusing are the functions that refuse a nil context, by one that stands before: what takes one calls one of them with it.
var refusing = []string{"noContext", "callable", "block", "makeOwn", "beginValue", "split", "usable", "env", "Launched"}

// trusting lists the functions of a package that take a context from its user and do not ask, and those of refusing that do not.
func trusting(files fs.FS, dir string) (list []string, err error) {
	err = in(files, dir, func(s *source) {
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
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					switch fun := c.Fun.(type) {
					case *ast.Ident:
						asks = asks || slices.Contains(allowed, fun.Name)
					case *ast.SelectorExpr:
						asks = asks || slices.Contains(allowed, fun.Sel.Name)
					}
				}
				return true
			})
			if !asks {
				list = append(list, s.name+": "+f.Name.Name)
			}
		}
	})
	return list, err
}

// takesContext reports whether some parameter of f is a context.
func takesContext(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		s, ok := p.Type.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		x, ok := s.X.(*ast.Ident)
		return ok && x.Name == "context" && s.Sel.Name == "Context"
	})
}

// A nil context is an error everywhere in the API.
func TestContexts(t *testing.T) {
	for _, dir := range []string{"ccl", "ccl/boot"} {
		list, err := trusting(os.DirFS("../.."), dir)
		require.NoError(t, err)
		require.Empty(t, list)
	}
}

func TestContextsFinds(t *testing.T) {
	list, err := trusting(fstest.MapFS{"ccl/x.go": {Data: []byte(`package ccl
func Asks(ctx context.Context) { noContext(ctx) }
func Passes(ctx context.Context, c *Comm) error { return c.block(ctx, nil) }
func Trusts(ctx context.Context) { <-ctx.Done() }
func inner(ctx context.Context) { <-ctx.Done() }
func (c *Comm) block(ctx context.Context) { return c.split(ctx) }
func (c *Comm) split(ctx context.Context) { return c.block(ctx) }
func (c *Comm) Method(ctx context.Context) { <-ctx.Done() }
func (c *hidden) Method(ctx context.Context) { <-ctx.Done() }
func None(f func(context.Context)) {}
`)}}, "ccl")
	require.NoError(t, err)
	require.Equal(t, []string{"ccl/x.go: Trusts", "ccl/x.go: block", "ccl/x.go: Method"}, list)
}
