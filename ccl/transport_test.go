package ccl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/plane/event"
)

// oneCCL initialises MPI by itself where that works, and is refused where it would abort the process.
func TestInitialisesMPI(t *testing.T) {
	for _, tc := range []struct {
		launcher, env string
		want          string // of the error
	}{
		{"none", "", ""},
		{"pmi", "PMI_RANK=1 PMI_SIZE=2 PMI_FD=5", "the launcher's PMI connection serves once"},
		{"pmi", "PMI_RANK=0 PMI_SIZE=1 PMI_FD=5", ""},
		{"openmpi", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2", ""},
		{"goccl", "GOCCL_RANK=1 GOCCL_SIZE=2 GOCCL_ROOT=127.0.0.1:9", "not started by a launcher with MPI"},
		{"env", "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=9", "not started by a launcher with MPI"},
	} {
		getenv := func(name string) string {
			for _, v := range strings.Fields(tc.env) {
				if value, ok := strings.CutPrefix(v, name+"="); ok {
					return value
				}
			}
			return ""
		}
		l, err := boot.Detect(getenv)
		require.NoError(t, err)
		require.Equal(t, tc.launcher, l.Launcher)
		err = initialisesMPI(getenv)
		if tc.want == "" {
			assert.NoError(t, err, tc.env)
		} else {
			require.Error(t, err, tc.env)
			told := len(event.Event{}.Text) // of it, to other ranks
			assert.Contains(t, err.Error()[:told], tc.want, tc.env)
		}
	}
	for name, value := range map[string]string{"CCL_ATL_TRANSPORT": "", "CCL_PROCESS_LAUNCHER": "", "CCL_KVS_MODE": "",
		"GOCCL_LAUNCHER": "pals", "PALS_RANKID": "1", "PALS_LOCAL_RANKID": "1", "PALS_LOCAL_SIZE": "2", "GOCCL_SIZE": "4", "PMIX_RANK": "1"} {
		t.Setenv(name, value)
	}
	assert.True(t, overMPITransport(), "PALS, with PMIx, on two hosts")
	t.Setenv("GOCCL_SIZE", "2")
	assert.False(t, overMPITransport(), "on one host")
	t.Setenv("GOCCL_LAUNCHER", "")
	t.Setenv("PALS_RANKID", "")
	t.Setenv("CCL_ATL_TRANSPORT", "ofi")
	t.Setenv("GOCCL_RANK", "1")
	t.Setenv("GOCCL_SIZE", "2")
	t.Setenv("GOCCL_ROOT", "127.0.0.1:9")
	_, err := leaveMPI()
	assert.NoError(t, err)
	t.Setenv("CCL_ATL_TRANSPORT", "mpi")
	_, err = leaveMPI()
	assert.ErrorContains(t, err, "start them with mpiexec")
}
