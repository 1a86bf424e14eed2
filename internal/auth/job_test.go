package auth

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/environ"
)

// secretOf is b as the secret of a job, or that it has none.
func secretOf(b []byte) Secret {
	if len(b) == 0 {
		return Secret{nil, open}
	}
	return Given(b)
}

// What the program gives goes before the environment, and that before none, which is refused where one is required.
func TestSettle(t *testing.T) {
	const long, other = "sixteen bytes and more", "another of sixteen bytes"
	for _, tc := range []struct {
		name  string
		own   string
		env   []string
		want  string
		known bool
		err   string
	}{
		{name: "the program's", own: long, env: []string{environ.SecretText.Set(other), environ.RequireSecret.Set("1")}, want: long, known: true},
		{name: "the environment's", env: []string{environ.SecretText.Set(other), environ.RequireSecret.Set("1")}, want: other, known: true},
		{name: "none"},
		{name: "none, and one is required", env: []string{environ.RequireSecret.Set("1")},
			err: "GOCCL_REQUIRE_SECRET=1, but the job has no secret: give all ranks the same GOCCL_SECRET_FILE"},
		{name: "an empty one, and one is required", env: []string{environ.SecretText.Set(""), environ.RequireSecret.Set("1")},
			err: "the job has no secret (GOCCL_SECRET is set, but empty, which is none): give all ranks"},
		{name: "the program's can be guessed", own: "short", err: "it holds 5 bytes, and fewer than 16 can be guessed"},
		{name: "the environment's can be guessed", env: []string{environ.SecretText.Set("short")}, err: "GOCCL_SECRET: it holds 5 bytes"},
		{name: "misspelt", env: []string{environ.RequireSecret.Set("perhaps")}, err: "GOCCL_REQUIRE_SECRET: it takes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := Settle([]byte(tc.own), tc.env)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				require.True(t, s.IsZero(), "a secret beside the error")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, string(s.Bytes()))
			require.Equal(t, tc.known, s.Known())
			require.Equal(t, tc.known, s.Derive("part", []byte("told")).Known(), "what is derived of none is known to nobody")
			require.False(t, s.IsZero())
		})
	}
}

// No connection begins before the secret is settled, and one that the kernel is to vouch for is no TCP connection.
func TestUnsettledOpensNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	for _, s := range []Secret{{}, Given(nil), ByKernel()} {
		_, _, err := Client(c, "job", s, nil)
		require.ErrorIs(t, err, errUnsettled)
		_, _, err = Server(c, "job", s, echo)
		require.ErrorIs(t, err, errUnsettled)
	}
}
