package launch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVoice(t *testing.T) {
	for _, tc := range []struct {
		text  []string
		heard bool
	}{
		{[]string{"bench: -e 1T: too much\n"}, true},
		{[]string{"be", "nch: allreduce", ": rank 1 is lost", "\n"}, true},
		{[]string{"bench: rank 1 on h: warn: ccl: rank 2 is lost\n"}, false},
		{[]string{"bench: rank 1 on h: warn: ccl: rank 2 is lost\nbench: allreduce: rank 2 is lost\n"}, true},
		{[]string{"a library: a warning\n"}, false},
		{[]string{"srun: error\nbench: interrupted\n"}, true},
		{nil, false},
	} {
		v := new(Voice)
		for _, part := range tc.text {
			n, err := fmt.Fprint(v, part)
			require.NoError(t, err)
			require.Equal(t, len(part), n)
		}
		require.Equal(t, tc.heard, v.Heard(), "%q", tc.text)
	}
}
