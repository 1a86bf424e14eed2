//go:build fault && linux

package ccl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A spare that is killed between taking it on itself to tell of another's loss and telling takes nothing with it: both are told of.
func TestSpareIsLostAsItTells(t *testing.T) {
	plan := "5@spare.tells:1:kill"
	for i := range 4 * 8 { // the others are slow, so it is rank 5 that tells; a loss is heard of up to once from each
		plan += fmt.Sprintf(",%d@spare.lost:%d:delay:2s", i%4, i/4+1)
	}
	text := processes(t, 6, 0, "spare", "w4,t5", "CCL_TEST_DIR="+t.TempDir(), "GOCCL_SPARES=2", "GOCCL_FAULT="+plan)
	for _, spare := range []string{"spare 1 of 2 (world rank 4) lost: ", "spare 2 of 2 (world rank 5) lost: "} {
		require.Contains(t, text, spare)
	}
	require.Equal(t, 4, strings.Count(text, "replacements: 0"), text)
}
