package environ

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMisspellings(t *testing.T) {
	for _, tc := range []struct {
		name    string
		warned  string // the variable that was meant
		refused bool
	}{
		{name: "GOCCL_RNAK", warned: "GOCCL_RANK", refused: true},
		{name: "GOCCL_SZIE", warned: "GOCCL_SIZE", refused: true},
		{name: "GOCCL_CHEKSUM", warned: "GOCCL_CHECKSUM", refused: true},
		{name: "GOCCL_REQUIRE_SECERT", warned: "GOCCL_REQUIRE_SECRET", refused: true},
		{name: "GOCCL_REQUIRESECRET", warned: "GOCCL_REQUIRE_SECRET", refused: true},
		{name: "GOCCL_rank", warned: "GOCCL_RANK", refused: true},
		{name: "GOCLL_RANK", warned: "GOCCL_RANK", refused: true},
		{name: "GCCL_RANK", warned: "GOCCL_RANK", refused: true},
		{name: "GOCCL_SECRETS", warned: "GOCCL_SECRET", refused: true},
		{name: "GOCCL_SECRET_FLIE", warned: "GOCCL_SECRET_FILE", refused: true},
		{name: "GOCCL_TRAEC", warned: "GOCCL_TRACE"},
		{name: "GOCCL_HOST_ID", warned: "GOCCL_HOSTID"},
		{name: "GOCCL_SHMREAD", warned: "GOCCL_SHM_READ"},
		// Names that are far from all, that tests have, or that Kubernetes sets for a service called goccl.
		{name: "GOCCL_MY_KEY"}, {name: "GOCCL_TEST_RNAK"}, {name: "GOCCL_REQUIRE"},
		{name: "GOCCL_PORT"}, {name: "GOCCL_SERVICE_HOST"}, {name: "GOCCL_SERVICE_PORT_RANK"}, {name: "GOCCL_PORT_29500_TCP_ADDR"},
		{name: "GOROOT"}, {name: "GOCACHE"}, {name: "NCCL_RANK"}, {name: "RNAK"},
	} {
		misspelt, err := Check([]string{tc.name + "=1"})
		want := tc.name + " is not a variable of goccl; did you mean " + tc.warned + "?"
		switch {
		case tc.refused:
			require.EqualError(t, err, want)
			require.Empty(t, misspelt)
		case tc.warned != "":
			require.NoError(t, err)
			require.Len(t, misspelt, 1, tc.name)
			require.Equal(t, want, misspelt[0].String())
		default:
			require.NoError(t, err)
			require.Empty(t, misspelt, tc.name)
		}
		_, err = Check([]string{tc.name + "="})
		require.NoError(t, err, "what is empty counts as not set")
	}
}

func TestStrangers(t *testing.T) {
	var got []string
	for _, m := range Strangers([]string{"GOCCL_MY_KEY=1", "GOCCL_RANK=1", "GOCCL_TRAEC=1", "GOCCL_TEST_X=1", "GOCCL_PORT=tcp://x", "GOPATH=/x", "GOCLL_RANK=1"}) {
		got = append(got, m.String())
	}
	require.Equal(t, []string{"GOCCL_MY_KEY is not a variable of goccl", "GOCCL_TRAEC is not a variable of goccl; did you mean GOCCL_TRACE?",
		"GOCLL_RANK is not a variable of goccl; did you mean GOCCL_RANK?"}, got)
}

// Whatever an environment holds, Check returns, and says nothing of variables that are not goccl's.
func FuzzCheck(f *testing.F) {
	f.Add("GOCCL_RANK", "x")
	f.Add("GOCCL_SECRETS", "")
	f.Add("PATH", "/bin")
	f.Fuzz(func(t *testing.T, name, value string) {
		misspelt, err := Check([]string{name + "=" + value})
		if !strings.HasPrefix(strings.ToUpper(name), "GO") && !strings.HasPrefix(name, "GCCL_") && (misspelt != nil || err != nil) {
			t.Fatal(misspelt, err)
		}
		Strangers([]string{name + "=" + value})
	})
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"ab", "ba", 1}, {"kitten", "sitting", 3}, {"redcue", "reduce", 1}} {
		require.Equal(t, tc.want, Distance(tc.a, tc.b), tc.a+" "+tc.b)
	}
}

func TestMatch(t *testing.T) {
	patterns := []string{"RANK", "PMI_*"}
	for name, want := range map[string]bool{"RANK": true, "RANKS": false, "PMI_": true, "PMI_RANK": true, "PMIX_RANK": false, "": false} {
		require.Equal(t, want, Match(patterns, name), name)
	}
	require.Equal(t, []string{"PATH=/bin", "X"}, Without([]string{"RANK=1", "PATH=/bin", "PMI_FD=3", "RANK", "X"}, patterns))
}

func TestOf(t *testing.T) {
	get := Of([]string{"A=1", "AB=2", "A=3=4"})
	require.Equal(t, []string{"3=4", "2", ""}, []string{get("A"), get("AB"), get("B")})
}
