//go:build (nccl || rccl) && cgo && linux

package native

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
)

// TestHints: each version of the library gets what it knows, and refuses what it does not.
func TestHints(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		c := v.fake(t)
		for _, tc := range []struct {
			version int
			hints   engine.Hints
			want    string // what the library was told
			lacks   string // or why it is not asked
		}{
			{22809, engine.Hints{}, " commName=tp", ""},
			{22809, engine.Hints{MinCTAs: 2, MaxCTAs: 8, CTAPolicy: 2, TrafficClass: 3, Net: "Socket"},
				"minCTAs=2 maxCTAs=8 trafficClass=3 CTAPolicy=2 netName=Socket commName=tp", ""},
			{23102, engine.Hints{LaunchOrder: true, MaxCTAs: 4}, "maxCTAs=4 launchOrderImplicit=1  commName=tp", noOrder(v, "2.31.2")},
			{22809, engine.Hints{LaunchOrder: true}, "", order(v, "2.28.9")},
			{22703, engine.Hints{CTAPolicy: 1}, "CTAPolicy=1  commName=tp", ""},
			{22703, engine.Hints{CTAPolicy: 2}, "", "2.27.3 has no CTAPolicyZero; that needs " + v.title + " 2.28.3"},
			{22605, engine.Hints{MaxCTAs: 4, TrafficClass: 7}, "maxCTAs=4 trafficClass=7  ", ""},
			{22605, engine.Hints{CTAPolicy: 1}, "", "2.26.5 has no CTAPolicy; that needs " + v.title + " 2.27.0"},
			{22304, engine.Hints{MinCTAs: 1, Net: "IB"}, "minCTAs=1 netName=IB ", ""},
			{22304, engine.Hints{TrafficClass: 7}, "", "2.23.4 has no TrafficClass; that needs " + v.title + " 2.26.0"},
			{21602, engine.Hints{}, " ", ""},
			{21602, engine.Hints{Net: "IB"}, "", "2.16.2 has no Net; that needs " + v.title + " 2.17.0"},
			{21602, engine.Hints{MinCTAs: 1}, "", "2.16.2 has no MinCTAs; that needs " + v.title + " 2.17.0"},
		} {
			t.Run(strconv.Itoa(tc.version)+" "+tc.want+tc.lacks, func(t *testing.T) {
				leaks(t, v)
				t.Setenv("FAKE_NCCL_VERSION", strconv.Itoa(tc.version))
				lib := *open(t, v)
				lib.version = tc.version
				if err := lib.Hints(tc.hints); tc.lacks != "" {
					require.EqualError(t, err, lib.v.title+" "+version(tc.version)+" (FAKE)"+tc.lacks[len(version(tc.version)):])
					return
				}
				require.NoError(t, lib.Hints(tc.hints))
				id, err := lib.ID()
				require.NoError(t, err)
				e, err := lib.New(within(t), engine.Group{Size: 1, Locals: 1, Hints: tc.hints, Name: "tp"}, id)
				require.NoError(t, err)
				require.Equal(t, tc.want, c.Config(e.Native()))
				require.NoError(t, e.Close())
			})
		}
	})
}

// order is why a version lacks LaunchOrder, noOrder why RCCL does.
func order(v *vendor, version string) string {
	if v.launchOrder {
		return version + " has no LaunchOrder; that needs " + v.title + " 2.31.0"
	}
	return version + " has no LaunchOrder"
}

func noOrder(v *vendor, version string) string {
	if v.launchOrder {
		return ""
	}
	return version + " has no LaunchOrder"
}

// TestHintsRefused: what the library itself refuses is its error, and nothing is left.
func TestHintsRefused(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		lib := open(t, v)
		id, err := lib.ID()
		require.NoError(t, err)
		_, err = lib.New(within(t), engine.Group{Size: 1, Locals: 1, Hints: engine.Hints{MaxCTAs: 65}}, id)
		require.ErrorContains(t, err, "ncclCommInitRank: invalid argument")
		require.ErrorContains(t, err, "max channels")
	})
}
