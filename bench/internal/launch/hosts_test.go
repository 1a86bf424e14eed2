package launch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHosts(t *testing.T) {
	require.Nil(t, Hosts(4, 1))
	require.Equal(t, []string{"host-0", "host-0", "host-1", "host-1"}, Hosts(4, 2))
	require.Equal(t, []string{"host-0", "host-0", "host-1", "host-1", "host-2"}, Hosts(5, 3))
}
