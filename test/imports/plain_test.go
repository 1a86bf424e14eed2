package imports

import (
	"go/ast"
	"path"
	"strconv"
)

// What decodes JSON below ccl and bench takes plain.Unmarshal: the texts in it come from a file or from another rank, and reach
// terminals and logs without control characters.
var plainTexts = rule{
	name: "texts from outside are plain", dirs: []string{"ccl", "bench"},
	finds: func(src *source, bad func(string)) {
		local := ""
		for _, spec := range src.Imports {
			if p, _ := strconv.Unquote(spec.Path.Value); p == "encoding/json" {
				if local = path.Base(p); spec.Name != nil {
					local = spec.Name.Name
				}
			}
		}
		each(src.File, func(s *ast.SelectorExpr) {
			if isOf(s, local, "Unmarshal") || isOf(s, local, "NewDecoder") {
				bad(src.name)
			}
		})
	},
	allowed: []string{"bench/internal/report/nccltests.go"}, // methods of types that plain.Unmarshal decodes
	planted: map[string]string{
		"ccl/a.go":    "package ccl\nimport \"encoding/json\"\nfunc f(b []byte) { var v any; json.Unmarshal(b, &v) }",
		"ccl/b.go":    "package ccl\nimport j \"encoding/json\"\nvar d = j.NewDecoder(nil)",
		"ccl/good.go": "package ccl\nimport \"encoding/json\"\nvar b, _ = json.Marshal(1)",
	},
	want: []string{"ccl/a.go", "ccl/b.go"},
}
