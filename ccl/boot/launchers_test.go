package boot

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A rank without a size is an error that names both variables.
func TestLaunchersHalf(t *testing.T) {
	for rank, f := range map[string]family{"GOCCL_RANK": families[0], "RANK": families[1], "OMPI_COMM_WORLD_RANK": families[2], "PMI_RANK": families[3]} {
		v := varsOf(map[string]string{rank: "1"}, nil)
		require.Equal(t, -1, f.read(v).Size, rank)
		require.ErrorContains(t, v.err, f.size+" is not set, though "+rank+"=1 is", rank)
	}
}

// PMI-1 needs a way to the process manager; Cray's port alone, under PALS, is none.
func TestHasPMI(t *testing.T) {
	for _, tc := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{"PMI_RANK": "0"}, false},
		{map[string]string{"PMI_RANK": "0", "PMI_FD": "3"}, true},
		{map[string]string{"PMI_RANK": "0", "PMI_PORT": "h:1"}, true},
		{map[string]string{"PMI_FD": "3"}, false},
		{map[string]string{"PMI_RANK": "0", "PMI_CONTROL_PORT": "1"}, true},
		{map[string]string{"PMI_RANK": "0", "PMI_CONTROL_PORT": "1", "PALS_RANKID": "0"}, false},
	} {
		require.Equal(t, tc.want, hasPMI(varsOf(tc.env, nil)), "%v", tc.env)
	}
}
