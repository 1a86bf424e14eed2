package reach

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// Large results that other processes' memory is read into count among what is to lie in huge pages. Small ones do not, nor those in
// memory that all can touch, nor those of ranks of one process.
func TestToBeFilled(t *testing.T) {
	large := make([]byte, tuning.HugeResultsFrom)
	var all shm.HugePages
	if all.Add(large, shm.HugeFilled); assert.ObjectsAreEqual(shm.HugePages{}, all) {
		t.Skip("hardware: no transparent huge pages")
	}
	shared, err := shm.NewShared()
	require.NoError(t, err)
	defer shared.Close()
	for _, tc := range []struct {
		name    string
		host    *shm.Host
		at      shm.Span
		results []byte
		counts  bool
	}{
		{"large", shared, shm.Span{}, large, true},
		{"small", shared, shm.Span{}, large[1:], false},
		{"none", shared, shm.Span{}, nil, false},
		{"MakeSlice memory", shared, shm.Span{Size: uint64(len(large))}, large, false},
		{"one process", plane.PrivateHost(), shm.Span{}, large, false},
	} {
		c := ranksOn(t, 2, tc.host)[0]
		c.ToBeFilled(&tc.at, tc.results)
		assert.Equal(t, tc.counts, !assert.ObjectsAreEqual(shm.HugePages{}, c.huge), tc.name)
	}
}
