package environ

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func env(vars ...string) func(string) string {
	return func(name string) string {
		for _, kv := range vars {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

func TestValues(t *testing.T) {
	for _, s := range []string{"1", "true", "yes", "on", "TRUE", "Yes"} {
		on, err := Checksum.From(env("GOCCL_CHECKSUM=" + s))
		require.NoError(t, err)
		require.True(t, on, s)
	}
	for _, s := range []string{"0", "false", "no", "off", ""} {
		on, err := Checksum.From(env("GOCCL_CHECKSUM=" + s))
		require.NoError(t, err)
		require.False(t, on, s)
	}
	on, err := HugePages.From(env())
	require.NoError(t, err)
	require.True(t, on)
	on, err = HugePages.From(env("GOCCL_HUGE_PAGES=off"))
	require.NoError(t, err)
	require.False(t, on)
	for s, want := range map[string]string{"": "", "yes": "1", "0": "0", "False": "0"} {
		got, err := SHMRead.From(env("GOCCL_SHM_READ=" + s))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	n, err := Rank.From(env())
	require.NoError(t, err)
	require.Equal(t, -1, n)
	n, err = Rank.From(env("GOCCL_RANK=17"))
	require.NoError(t, err)
	require.Equal(t, 17, n)
	for s, want := range map[string]time.Duration{"": 10 * time.Second, "0": 0, "2.5": 2500 * time.Millisecond, "1m": time.Minute} {
		d, err := StallWarn.From(env("GOCCL_STALL_WARN=" + s))
		require.NoError(t, err)
		require.Equal(t, want, d)
	}
	for _, s := range []string{"", "relay.example.com:29901", "10.0.0.5:1", "[fd00::1]:65535"} {
		got, err := Relay.From(env("GOCCL_RELAY=" + s))
		require.NoError(t, err)
		require.Equal(t, s, got)
	}
	text, err := Algo.From(env("GOCCL_ALGO=anything"))
	require.NoError(t, err)
	require.Equal(t, "anything", text)
	require.Equal(t, "GOCCL_RANK=3", Rank.Set("3"))
	require.Equal(t, "GOCCL_RANK", Known("GOCCL_RANK").Name)
	require.Nil(t, Known("GOCCL_"))
}

// A value that an entry does not take is an error that says what it takes; Get has the default then.
func TestWrongValues(t *testing.T) {
	for _, tc := range []struct {
		set, text string
	}{
		{"GOCCL_CHECKSUM=2", "GOCCL_CHECKSUM=2: it takes 1 or 0"},
		{"GOCCL_CHECKSUM=y e s", `GOCCL_CHECKSUM="y e s": it takes 1 or 0`},
		{"GOCCL_RELAY=x", "GOCCL_RELAY=x: it takes host:port"},
		{"GOCCL_RELAY=:29901", "GOCCL_RELAY=:29901: it takes host:port"},
		{"GOCCL_RELAY=h:0", "GOCCL_RELAY=h:0: it takes host:port"},
		{"GOCCL_RELAY=h:+1", "GOCCL_RELAY=h:+1: it takes host:port"},
		{"GOCCL_RELAY=fd00::1:29901", "GOCCL_RELAY=fd00::1:29901: it takes host:port"},
		{"GOCCL_SOCKETS=0", "GOCCL_SOCKETS=0: it takes 1 to 16"},
		{"GOCCL_SOCKETS=17", "GOCCL_SOCKETS=17: it takes 1 to 16"},
		{"GOCCL_RANK=-1", "GOCCL_RANK=-1: it takes a whole number of at least 0"},
		{"GOCCL_RANK=3000000000", "GOCCL_RANK=3000000000: it takes a whole number of at least 0"},
		{"GOCCL_SHM_READ=maybe", "GOCCL_SHM_READ=maybe: it takes 1 or 0"},
		{"GOCCL_LOG=loud", "GOCCL_LOG=loud: it takes one of all, debug, info, warn, error, quiet"},
		{"GOCCL_BOOT_TIMEOUT=0", "GOCCL_BOOT_TIMEOUT=0: it takes a duration such as 30s or 5m, or a number of seconds"},
		{"GOCCL_BOOT_TIMEOUT=1 s", `GOCCL_BOOT_TIMEOUT="1 s": it takes`},
		{"GOCCL_STALL_WARN=-3s", "GOCCL_STALL_WARN=-3s: it takes a duration such as 30s, or a number of seconds; 0 means never"},
		{"GOCCL_STALL_WARN=NaN", "GOCCL_STALL_WARN=NaN: it takes"},
		{"GOCCL_STALL_WARN=1e99", "GOCCL_STALL_WARN=1e99: it takes"},
		{"GOCCL_STALL_WARN=\x1b[31m", `GOCCL_STALL_WARN="\x1b[31m": it takes`},
		{"GOCCL_PPROF=" + strings.Repeat("x", 1000), "GOCCL_PPROF=" + strings.Repeat("x", 64) + "...: it takes 1 or 0"},
	} {
		misspelt, err := Check([]string{tc.set})
		require.Empty(t, misspelt)
		require.ErrorContains(t, err, tc.text)
	}
	t.Setenv("GOCCL_HUGE_PAGES", "perhaps")
	require.True(t, HugePages.Get())
	_, err := Check([]string{"GOCCL_LOG=loud", "GOCCL_CHECKSUM=yess", "GOCCL_RANK=0"})
	require.EqualError(t, err, "GOCCL_CHECKSUM=yess: it takes 1 or 0; GOCCL_LOG=loud: it takes one of all, debug, info, warn, error, quiet")
	_, err = Check([]string{"GOCCL_LOG=loud"}, Job, Secret)
	require.NoError(t, err, "of other groups")
}

// Every entry can be read of: it has words for each column of the table, and an empty value is none.
func TestEntries(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range All() {
		require.True(t, strings.HasPrefix(v.Name, Prefix), v.Name)
		require.False(t, seen[v.Name], "%s is there twice", v.Name)
		seen[v.Name] = true
		require.NotEmpty(t, v.Takes, v.Name)
		require.NotEmpty(t, v.By, v.Name)
		if v.Group != Test {
			require.NotEmpty(t, v.Help, v.Name)
			require.NotEmpty(t, v.Default, v.Name)
		}
		misspelt, err := Check([]string{v.Name + "="})
		require.NoError(t, err)
		require.Empty(t, misspelt)
	}
	require.Greater(t, len(seen), 50)
}
