package doctor

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/boot"
)

// What a rank tells about itself has nothing of the environment but what is allowed.
func TestLookKeepsSecrets(t *testing.T) {
	environ := append(os.Environ(), "GOCCL_SECRET=planted", "AWS_SECRET_ACCESS_KEY=planted", "MY_SETTING=planted", "NCCL_TOKEN=planted", "NCCL_CROSS_NIC=1")
	f := look(boot.Launch{Rank: 0, Local: 0, Locals: 1}, "0123", environ)
	text, err := json.Marshal(f)
	require.NoError(t, err)
	require.NotContains(t, string(text), "planted")
	require.Contains(t, f.Env, "NCCL_CROSS_NIC=1")
	require.True(t, f.Leader)
	require.Positive(t, f.Cores)
}

// Ranks that are not the first of their host tell what is theirs alone.
func TestLookOfOthers(t *testing.T) {
	f := look(boot.Launch{Rank: 5, Local: 1, Locals: 2}, "0123", nil)
	require.False(t, f.Leader)
	require.Nil(t, f.Print)
	require.Nil(t, f.Interfaces)
}

func TestAbsent(t *testing.T) {
	have := []iface{{Name: "eth0"}, {Name: "hsn0"}}
	for value, want := range map[string][]string{
		"": nil, "eth0": nil, "eth": nil, "=eth0": nil, "=eth": {"eth"}, "ib0": {"ib0"}, "ib,hsn": nil, "^lo,docker": nil, "lo": nil, "ib0,ib1": {"ib0", "ib1"},
	} {
		require.Equal(t, want, absent(getenvOf([]string{"NCCL_SOCKET_IFNAME=" + value}), have)["NCCL_SOCKET_IFNAME"], value)
	}
}

func TestOnline(t *testing.T) {
	require.Equal(t, 9, online(fake(t, map[string]string{"sys/devices/system/cpu/online": "0-7,12\n"})))
	require.Positive(t, online(t.TempDir()))
	require.Nil(t, expand("x"))
	require.Nil(t, expand("7-3"))
}
