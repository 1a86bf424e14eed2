package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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

// vendorNames are how a file names one vendor among others: in a build constraint, a list of tags, or a comparison.
const vendorNames = `"X"|-tags[ =][a-z,]*\bX\b|\b[a-z]+,X,|\bX,[a-z]+\b|tags-X\b|go:build.*\bX\b`

// placesOf are the paths that CONTRIBUTING names where it says how to add a vendor.
func placesOf(contributing string) (places []string) {
	_, text, _ := strings.Cut(contributing, "\n## Add a vendor\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, m := range code.FindAllString(text, -1) {
		places = append(places, strings.Trim(m, "`"))
	}
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		places = append(places, m[1])
	}
	return places
}

// isAt reports whether a file is one of these places, or below one, where NAME stands for a backend.
func isAt(file, backend string, places []string) bool {
	for _, p := range places {
		p = strings.ReplaceAll(p, "NAME", backend)
		if file == p || strings.HasPrefix(file, p+"/") {
			return true
		}
	}
	return false
}

// Each file that names NCCL is in CONTRIBUTING's list of the places that a new vendor may concern,
// and each place of the list exists.
func TestVendorPlaces(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		t.Skip("hardware: no git checkout")
	}
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	places := placesOf(string(text))
	const vendor = "nccl"
	names := regexp.MustCompile(strings.ReplaceAll(vendorNames, "X", vendor))
	var unnamed []string
	for _, name := range strings.Fields(string(out)) {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".md") || strings.Contains(name, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) { // it is being moved
			continue
		}
		require.NoError(t, err)
		if names.Match(text) && !isAt(name, vendor, places) {
			unnamed = append(unnamed, name)
		}
	}
	require.Empty(t, unnamed, "files that name a vendor, and that CONTRIBUTING does not")
	_, table, found := strings.Cut(string(text), "\n| place | what it has of a vendor |\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range strings.Split(table, "\n") {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		for _, place := range code.FindAllString(first, -1) {
			_, err := os.Stat(filepath.Join(root, strings.Trim(place, "`")))
			require.NoError(t, err, row)
		}
	}
	for _, line := range []string{`case "nccl":`, "//go:build linux && nccl", "go build -tags mpi,nccl ./x", "engines=nccl,rccl", "spare 3 tags-nccl make"} {
		require.Regexp(t, names, line)
	}
	require.NotRegexp(t, names, "ncclAllReduce, NCCL and libnccl.so")
	planted := placesOf("\n## Add a vendor\n`a/NAME.go` [x](b)\n## Next\n`c`")
	require.True(t, isAt("a/nccl.go", vendor, planted))
	require.True(t, isAt("b/x.go", vendor, planted))
	require.False(t, isAt("c/x.go", vendor, planted))
	require.False(t, isAt("bc", vendor, planted))
}
