package launch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHosts(t *testing.T) {
	require.Nil(t, Hosts(4, 1))
	require.Equal(t, []string{"host0", "host0", "host1", "host1"}, Hosts(4, 2))
	require.Equal(t, []string{"host0", "host0", "host1", "host1", "host2"}, Hosts(5, 3))
}
