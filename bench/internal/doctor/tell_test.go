package doctor

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWrite(t *testing.T) {
	e := healthy()
	e.ranks[2].Print["huge pages"] = "never"
	e.diagnose()
	var b strings.Builder
	require.NoError(t, e.write(&b))
	require.Contains(t, b.String(), "warning  huge pages         h2: transparent huge pages are off: large buffers cost more to touch\n                            -> echo madvise")
	require.True(t, strings.HasSuffix(b.String(), "# doctor: 4 ranks on 2 hosts: 0 errors, 1 warning\n# next: bench launch -np 4 -- ./gpt -steps 50 (go build ./examples/gpt) trains a small model on these ranks\n"), b.String())

	b.Reset()
	require.NoError(t, e.writeJSON(&b))
	var d document
	require.NoError(t, json.Unmarshal([]byte(b.String()), &d))
	require.Equal(t, Schema, d.Schema)
	require.Equal(t, []int{4, 2, 0, 1}, []int{d.Ranks, d.Hosts, d.Errors, d.Warnings})
	require.Equal(t, "A", d.Fingerprint["cpu"])
}
