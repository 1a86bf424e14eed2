package imports

import (
	"go/ast"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// decoders are the packages below ccl and bench that decode JSON by themselves, with the reason.
var decoders = map[string]string{
	"bench/internal/report/nccltests.go": "methods of types that plain.Unmarshal decodes",
}

// decodes lists where files below dir decode JSON other than by plain.Unmarshal: the texts in it come from a file or from another
// rank, and reach terminals and logs.
func decodes(files fs.FS, dir string, allowed map[string]string) (bad []string, err error) {
	err = below(files, dir, func(src *source) {
		local := ""
		for _, spec := range src.Imports {
			if p, _ := strconv.Unquote(spec.Path.Value); p == "encoding/json" {
				if local = path.Base(p); spec.Name != nil {
					local = spec.Name.Name
				}
			}
		}
		if local == "" || allowed[src.name] != "" {
			return
		}
		ast.Inspect(src.File, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "Unmarshal" || s.Sel.Name == "NewDecoder") {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == local {
					bad = append(bad, src.at(n))
				}
			}
			return true
		})
	})
	slices.Sort(bad)
	return bad, err
}

// Texts from files and from other ranks are shown without control characters: what decodes them makes them so.
func TestTextsFromOutsideArePlain(t *testing.T) {
	for _, dir := range []string{"ccl", "bench"} {
		bad, err := decodes(os.DirFS("../.."), dir, decoders)
		require.NoError(t, err)
		require.Empty(t, bad, "use plain.Unmarshal")
	}
}

func TestTextsFromOutsideFinds(t *testing.T) {
	files := fstest.MapFS{
		"ccl/a.go":      {Data: []byte("package ccl\nimport \"encoding/json\"\nfunc f(b []byte) { var v any; json.Unmarshal(b, &v) }")},
		"ccl/b.go":      {Data: []byte("package ccl\nimport j \"encoding/json\"\nvar d = j.NewDecoder(nil)")},
		"ccl/good.go":   {Data: []byte("package ccl\nimport \"encoding/json\"\nvar b, _ = json.Marshal(1)")},
		"ccl/listed.go": {Data: []byte("package ccl\nimport \"encoding/json\"\nvar d = json.NewDecoder(nil)")},
	}
	bad, err := decodes(files, "ccl", map[string]string{"ccl/listed.go": "a reason"})
	require.NoError(t, err)
	require.Equal(t, []string{"ccl/a.go:3", "ccl/b.go:3"}, bad)
}
