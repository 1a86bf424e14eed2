package compare

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/report"
)

func TestSettings(t *testing.T) {
	require.Empty(t, settings(&report.Config{}))
	require.Equal(t, map[string]string{"ranks": "4", "calls per iteration (-m)": "2", "registered (-R)": "yes", "symmetric windows (-R 2)": "yes", "groups (-split)": "mod:2"},
		settings(&report.Config{Agg: 2, Setup: report.Setup{Ranks: 4, Registered: true, Windows: true, Split: "mod:2"}}))
}
