package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/op"
)

// frozen are the numbers of include/goccl.h, by name.
func frozen(t *testing.T) map[string]int {
	text, err := os.ReadFile("../include/goccl.h")
	require.NoError(t, err)
	numbers := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^\tGOCCL_(\w+) = (\d+)`).FindAllStringSubmatch(string(text), -1) {
		numbers[m[1]], err = strconv.Atoi(m[2])
		require.NoError(t, err)
	}
	return numbers
}

// The numbers of C are those of package op, every one of them, and the codes are ccl's.
func TestNumbers(t *testing.T) {
	left := frozen(t)
	has := func(name string, want int) {
		for c, n := range left {
			if strings.ReplaceAll(strings.ToLower(c), "_", "") == name {
				assert.Equal(t, want, n, c)
				delete(left, c)
				return
			}
		}
		assert.Fail(t, "the header has no "+name)
	}
	for k := op.AllReduce; k <= op.Barrier; k++ {
		has(k.Flag(), int(k))
	}
	for typ := range op.Types {
		has(typ.Go(), int(typ))
	}
	for o := range op.Ops {
		has(o.String(), int(o))
	}
	has(op.Scaled.String(), int(op.Scaled))
	has("ok", 0)
	for i, name := range []string{"argument", "unsupported", "mismatch", "ranklost", "timeout", "canceled", "aborted",
		"unauthorized", "version", "backend", "closed", "unused"} {
		has("err"+name, i+1)
	}
	assert.Empty(t, left)
	assert.EqualValues(t, 12, ccl.ErrUnused)
	assert.EqualValues(t, 4, ccl.ErrRankLost)
}

// The version of the header is that of the library.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile("../include/goccl.h")
	require.NoError(t, err)
	m := regexp.MustCompile(`MAJOR (\d+)\n#define GOCCL_VERSION_MINOR (\d+)\n#define GOCCL_VERSION_PATCH (\d+)\n` +
		`#define GOCCL_VERSION "(.*)"`).FindStringSubmatch(string(text))
	require.NotNil(t, m)
	assert.Equal(t, ccl.Version, m[4])
	number, _, _ := strings.Cut(m[4], "-")
	assert.Equal(t, number, strings.Join(m[1:4], "."))
}
