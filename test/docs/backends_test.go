package docs

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
)

// listing are the pages that name all backends.
var listing = []string{"README.md", "docs/bench.md", "docs/glossary.md", "docs/platforms.md", "docs/environment.md"}

// Where the documents list backends, or the variables that name their libraries, they list all that there are.
func TestBackends(t *testing.T) {
	all := pages(t)
	for _, b := range engine.Backends() {
		for _, page := range listing {
			name := b.Name
			if page == "docs/environment.md" {
				name = b.Files.Env
			}
			require.Regexp(t, `\b`+name+`\b`, all[filepath.Join(root, page)], page)
		}
	}
}
