//go:build mpi

package mpi

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a library is known to get wrong on every processor, so that the tool is known to notice.
var knownWrong = map[string][]string{
	"MPICH 4.0.2": {"max of uint16", "max of uint32", "max of uint64", "max of uint8", "min of uint16", "min of uint32", "min of uint64", "min of uint8"},
}

var (
	asksFor   = regexp.MustCompile(`tool: asks for (.*)`)
	getsWrong = regexp.MustCompile(`tool: gets wrong (.*)`)
	libraryIs = regexp.MustCompile(`reduces: library (.*)`)
)

// TestReductions looks at what the engine asks MPI's own operators for: nothing that this library gets wrong, as the tool before
// it finds out, or that another is known to get wrong, and all that it could. The results are right.
func TestReductions(t *testing.T) {
	program := built(t, "build", "./testdata/reduces")
	underEach(t, func(t *testing.T, m install) {
		looks := m.headers != "" // the tool is compiled with the library's own
		if looks {
			m = m.withTool(t)
		}
		out, status := m.job(t, 3, []string{"REDUCES=1"}, program)
		require.Zero(t, status, out)
		require.Equal(t, 3, strings.Count(out, "of 3, mpi: ok"), out)
		if !looks {
			return
		}
		asked, wrong := said(out, asksFor), said(out, getsWrong)
		assert.Equal(t, []string{
			"max of double", "max of float", "max of int16", "max of int32", "max of int64", "max of int8",
			"min of double", "min of float", "min of int16", "min of int32", "min of int64", "min of int8",
			"prod of double", "prod of float", "prod of int16", "prod of int32", "prod of int64", "prod of int8",
			"prod of uint16", "prod of uint32", "prod of uint64", "prod of uint8",
			"sum of double", "sum of float", "sum of int32", "sum of int64", "sum of uint32", "sum of uint64",
		}, asked)
		for _, w := range wrong {
			assert.NotContains(t, asked, w)
		}
		t.Logf("%s gets wrong: %v", m.name, wrong)
		if known, ok := knownWrong[strings.Join(said(out, libraryIs), "")]; ok {
			assert.Subset(t, wrong, known)
		}
	})
}

// said is what lines of out have after a mark, once each, in order.
func said(out string, mark *regexp.Regexp) (list []string) {
	for _, line := range mark.FindAllStringSubmatch(out, -1) {
		list = append(list, line[1])
	}
	slices.Sort(list)
	return slices.Compact(list)
}
