package imports

import (
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// heldLock is how the comment of a function says which lock its callers hold.
var heldLock = regexp.MustCompile(`\b([A-Za-z]\w*(?:\.\w+)*) (?:is|are) held\b`)

// fieldsOf are the struct types of a package: the type of each field, by name. An embedded field
// has the name of its type.
type fieldsOf map[string]*ast.StructType

// declared are the struct types and the variables of a package, and its functions that have comments.
type declared struct {
	fieldsOf
	variables map[string]bool
	functions []documented
}

// documented is a function that has a comment, and where it is.
type documented struct {
	*ast.FuncDecl
	at string
}

// declaredIn are the packages of these files, by directory.
func declaredIn(files fs.FS) (map[string]*declared, error) {
	all := map[string]*declared{}
	err := below(files, ".", func(src *source) {
		dir := path.Dir(src.name)
		if all[dir] == nil {
			all[dir] = &declared{fieldsOf: fieldsOf{}, variables: map[string]bool{}}
		}
		in := all[dir]
		for s := range specs[*ast.TypeSpec](src.File) {
			if t, ok := s.Type.(*ast.StructType); ok {
				in.fieldsOf[s.Name.Name] = t
			}
		}
		for s := range specs[*ast.ValueSpec](src.File) {
			for _, n := range s.Names {
				in.variables[n.Name] = true
			}
		}
		for _, d := range src.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Doc != nil {
				in.functions = append(in.functions, documented{d, src.at(d)})
			}
		}
	})
	return all, err
}

// structAt is the struct that t is or points to, nil if the package has none of that name.
func (f fieldsOf) structAt(t ast.Expr) *ast.StructType {
	switch t := bareType(t).(type) {
	case *ast.StructType:
		return t
	case *ast.Ident:
		return f[t.Name]
	}
	return nil
}

// leadsToLock reports whether names, one field after the other from t on, end at a mutex, or at a
// struct that embeds one.
func (f fieldsOf) leadsToLock(t ast.Expr, names []string) bool {
	if isMutex(t) {
		return len(names) == 0
	}
	s := f.structAt(t)
	if s == nil {
		return false
	}
	for _, field := range s.Fields.List {
		if len(field.Names) == 0 {
			if id, ok := bareType(field.Type).(*ast.Ident); len(names) > 0 && ok && id.Name == names[0] && f.leadsToLock(field.Type, names[1:]) {
				return true
			}
			if f.leadsToLock(field.Type, names) { // promoted
				return true
			}
			continue
		}
		if len(names) > 0 && slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return n.Name == names[0] }) && f.leadsToLock(field.Type, names[1:]) {
			return true
		}
	}
	return false
}

func isMutex(t ast.Expr) bool {
	return isOf(t, "sync", "Mutex") || isOf(t, "sync", "RWMutex") || isOf(t, "sync", "Locker") || isOf(t, "simhost", "Mutex")
}

// named is the type of the receiver or argument of d with that name, nil if there is none. "" stands
// for the receiver, or the first argument.
func named(d *ast.FuncDecl, name string) ast.Expr {
	for _, list := range []*ast.FieldList{d.Recv, d.Type.Params} {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			if name == "" || slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return n.Name == name }) {
				return field.Type
			}
		}
	}
	return nil
}

// isHere reports whether the comment of d can say that name is held: the lock is reached from the
// receiver or an argument by its name, from a type of the package, or is a field of the receiver or
// a variable of the package.
func (f *declared) isHere(d *ast.FuncDecl, name string) bool {
	names := strings.Split(name, ".")
	if t := named(d, names[0]); t != nil && f.leadsToLock(t, names[1:]) {
		return true
	}
	if t := f.fieldsOf[names[0]]; t != nil && f.leadsToLock(t, names[1:]) {
		return true
	}
	if t := named(d, ""); d.Recv != nil && t != nil && f.leadsToLock(t, names) {
		return true
	}
	return f.variables[names[0]]
}

// unheld lists the comments of functions that name a lock which is not there, and how many name one.
func unheld(files fs.FS) (bad []string, named int, err error) {
	all, err := declaredIn(files)
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		for _, d := range all[dir].functions {
			for _, m := range heldLock.FindAllStringSubmatch(strings.Join(strings.Fields(d.Doc.Text()), " "), -1) {
				if !strings.Contains(m[1], ".") && m[1] != "mu" { // a word, such as memory
					continue
				}
				named++
				if !all[dir].isHere(d.FuncDecl, m[1]) {
					bad = append(bad, fmt.Sprintf("%s: %s says that %s is held", d.at, d.Name.Name, m[1]))
				}
			}
		}
	}
	return bad, named, err
}

// A comment that says which lock is held names one that its function can reach.
func TestHeldLocksExist(t *testing.T) {
	bad, named, err := unheld(os.DirFS("../.."))
	require.NoError(t, err)
	require.Empty(t, bad)
	require.Greater(t, named, 40)
}

func TestHeldLocksFinds(t *testing.T) {
	const text = `package a

import "sync"

type T struct {
	mu sync.Mutex
	in struct{ sync.Mutex }
	u
	p *V
}

type u struct{ promoted sync.Mutex }

type V struct{ Order sync.Mutex; n int }

var all = struct{ sync.Mutex }{}

// f: t.mu is held.
func (t *T) f() {}

// g: t.in is held, t.promoted is held, t.u.promoted is held, t.p.Order is held, V.Order is held,
// all is held. mu is held.
func (t *T) g() {}

// h: v.mu is held. T.none is held. x.mu is held. v.n is held.
func h(v *V) {}

// i: mu is held.
func (v *V) i(b *T) {}

// j: b.mu
// is held, and mu is held. The memory is held.
func j(b *T, mu *sync.Mutex) {}

// k: all.x is held.
func k() {}
`
	bad, named, err := unheld(fstest.MapFS{"a/a.go": {Data: []byte(text)}})
	require.NoError(t, err)
	require.Equal(t, []string{
		"a/a.go:26: h says that v.mu is held", "a/a.go:26: h says that T.none is held", "a/a.go:26: h says that x.mu is held",
		"a/a.go:26: h says that v.n is held", "a/a.go:29: i says that mu is held",
	}, bad)
	require.Equal(t, 15, named)
}
