package boot

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What can be no host and no port is refused at once, by the name of its variable; what can is taken.
func TestMaster(t *testing.T) {
	for _, tc := range []struct {
		addr, port string
		bad        string // the variable that the error names; "": none
		host       string
	}{
		{addr: "c1", port: "29500", host: "c1"},
		{addr: "10.0.0.1", port: "29500", host: "10.0.0.1"},
		{addr: "C1.cluster.local", port: "029613", host: "C1.cluster.local"},
		{addr: "a_b-0.svc", port: "1", host: "a_b-0.svc"},
		{addr: "::1", port: "29500", host: "::1"},
		{addr: "[::1]", port: "29500", host: "::1"},
		{addr: "fe80::1%eth0", port: "65535", host: "fe80::1%eth0"},
		{addr: "localhost ", port: "29500", bad: `MASTER_ADDR="localhost "`},
		{addr: "tcp://127.0.0.1", port: "29500", bad: "MASTER_ADDR=tcp://127.0.0.1"},
		{addr: "127.0.0.1:29606", port: "29500", bad: "MASTER_ADDR=127.0.0.1:29606"},
		{addr: "[c1]", port: "29500", bad: "MASTER_ADDR=[c1]"},
		{addr: "[10.0.0.1]", port: "29500", bad: "MASTER_ADDR=[10.0.0.1]"},
		{addr: "c1", port: "tcp://10.0.0.1:23456", bad: "MASTER_PORT=tcp://10.0.0.1:23456"},
		{addr: "c1", port: " 29604", bad: `MASTER_PORT=" 29604"`},
		{addr: "c1", port: "29604\n", bad: `MASTER_PORT="29604\n"`},
		{addr: "c1", port: "''", bad: "MASTER_PORT=''"},
		{addr: "c1", port: "0", bad: "MASTER_PORT=0"},
		{addr: "c1", port: "65536", bad: "MASTER_PORT=65536"},
		{addr: "c1", port: "+1", bad: "MASTER_PORT=+1"},
	} {
		t.Run(tc.addr+" "+tc.port, func(t *testing.T) {
			vars := map[string]string{"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": tc.addr, "MASTER_PORT": tc.port}
			host, port, err := masterOf(varsOf(vars, nil), "MASTER_ADDR", "MASTER_PORT").read()
			if tc.bad == "" {
				require.NoError(t, err)
				require.Equal(t, [2]string{tc.host, tc.port}, [2]string{host, port})
				return
			}
			require.ErrorContains(t, err, tc.bad)
			// The whole way, with far less time than the timeout.
			began := time.Now()
			_, err = env(within(t, long), varsOf(vars, nil))
			require.ErrorIs(t, err, Argument)
			require.ErrorContains(t, err, tc.bad)
			require.Less(t, time.Since(began), 10*time.Second)
		})
	}
}

// The agent of torchrun and the operators of Kubernetes are held to the same.
func TestMasterOfOthers(t *testing.T) {
	for _, tc := range []struct {
		name string
		vars map[string]string
		bad  string
	}{
		{"torchrun", map[string]string{"TORCHELASTIC_RUN_ID": "x", "RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": "1", "GROUP_WORLD_SIZE": "2", "MASTER_ADDR": "tcp://c1", "MASTER_PORT": "1"}, "MASTER_ADDR=tcp://c1"},
		{"pet", map[string]string{"PET_NODE_RANK": "1", "PET_NNODES": "2", "PET_MASTER_ADDR": "c1:1", "PET_MASTER_PORT": "1"}, "PET_MASTER_ADDR=c1:1"},
		{"pet's port", map[string]string{"PET_NODE_RANK": "1", "PET_NNODES": "2", "PET_MASTER_ADDR": "c1", "PET_MASTER_PORT": "x"}, "PET_MASTER_PORT=x"},
		{"rendezvous", map[string]string{"PET_NODE_RANK": "1", "PET_NNODES": "2", "PET_RDZV_ENDPOINT": "c1:x"}, "PET_RDZV_ENDPOINT=x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := env(within(t, long), varsOf(tc.vars, nil))
			require.ErrorContains(t, err, tc.bad)
		})
	}
}
