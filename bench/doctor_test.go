package main_test

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDoctor(t *testing.T) {
	out, errs, status := bench(t, []string{"NCCL_API_TOKEN=planted", "SOME_PASSWORD=planted"}, "doctor", "-np", "2", "-json")
	require.Zero(t, status, "%s%s", out, errs)
	require.Empty(t, errs)
	require.NotContains(t, out, "planted")
	var d struct {
		Schema       string
		Ranks, Hosts int
		Errors       int
		Findings     []struct{ Check, Level, Text, Remedy string }
		Fingerprint  map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.Equal(t, "goccl-doctor/1", d.Schema)
	require.Equal(t, []int{2, 1, 0}, []int{d.Ranks, d.Hosts, d.Errors})
	require.NotEmpty(t, d.Fingerprint["go"])
	for _, f := range d.Findings {
		require.Contains(t, []string{"ok", "warning", "error"}, f.Level)
	}
}

// An error is exit status 1, with the remedy; a warning is not.
func TestDoctorFindsFaults(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what is found differs here")
	}
	out, errs, status := bench(t, []string{"NCCL_SOCKET_IFNAME=nosuch0"}, "doctor", "-np", "2")
	require.Equal(t, 1, status, out)
	require.Empty(t, errs)
	require.Contains(t, out, "NCCL_SOCKET_IFNAME names nosuch0, which is not there or not up")
	require.Contains(t, out, "-> name one of these: ")

	out, _, status = bench(t, []string{"NCCL_DEBUG=INFO"}, "doctor", "-np", "2")
	require.Zero(t, status, out)
	require.Contains(t, out, "NCCL_DEBUG=INFO on rank 0: NCCL logs while it is measured")
}

// No output has anything of the environment that is not on the list.
func TestSecretsStay(t *testing.T) {
	env := []string{"HF_TOKEN=planted", "NCCL_SECRET=planted", "DATABASE_URL=planted", "GOCCL_MY_KEY=planted"}
	for _, args := range [][]string{{"-np", "2", "-e", "64"}, {"-dry-run"}, {"doctor", "-np", "2"}, {"launch", "-np", "2", "--", hello}} {
		out, errs, _ := bench(t, env, args...)
		require.NotContains(t, out+errs, "planted", "%v", args)
	}
}
