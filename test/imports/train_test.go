package imports

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// mostOfTrain is how many lines a package of train has at most, without tests; ARCHITECTURE.md says why two have more.
const mostOfTrain = 900

var moreOfTrain = map[string]int{"train/zero": 2000, "train/ckpt": 3600}

// tooLong are the packages below train that have more lines than that.
func tooLong(files fs.FS) (bad []string, err error) {
	lines := map[string]int{}
	err = fs.WalkDir(files, "train", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(files, name)
		lines[path.Dir(name)] += bytes.Count(text, []byte("\n"))
		return err
	})
	for dir, n := range lines {
		if most := max(mostOfTrain, moreOfTrain[dir]); n > most {
			bad = append(bad, fmt.Sprintf("%s has %d lines, and %d are the most: split it along a seam that a reader can name", dir, n, most))
		}
	}
	return bad, err
}

func TestTrainPackages(t *testing.T) {
	bad, err := tooLong(os.DirFS("../.."))
	require.NoError(t, err)
	require.Empty(t, bad)
}

func TestTrainPackagesFinds(t *testing.T) {
	long := &fstest.MapFile{Data: bytes.Repeat([]byte("\n"), mostOfTrain/2+1)}
	bad, err := tooLong(fstest.MapFS{"train/a/a.go": long, "train/a/b.go": long, "train/b/b.go": long, "train/b/b_test.go": long, "train/zero/a.go": long, "train/zero/b.go": long})
	require.NoError(t, err)
	require.Equal(t, []string{"train/a has 902 lines, and 900 are the most: split it along a seam that a reader can name"}, bad)
}
