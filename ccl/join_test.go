package ccl

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/call"
)

// seat is the Bootstrap of one rank alone, which notes what it is told.
type seat struct {
	closed  bool
	refused error
}

func (s *seat) Rank() int        { return 0 }
func (s *seat) Size() int        { return 1 }
func (s *seat) Close() error     { s.closed = true; return nil }
func (s *seat) Refuse(why error) { s.refused = why }
func (s *seat) AllGather(_ context.Context, mine []byte) ([][]byte, error) {
	return [][]byte{mine}, nil
}

// withLaunchers has those asked who started this process.
func withLaunchers(t *testing.T, with ...func(context.Context) (Bootstrap, bool, error)) {
	old := launchers
	launchers = with
	t.Cleanup(func() { launchers = old })
}

// The first launcher that knows is asked, and none after it; without one boot.Env is.
func TestLaunched(t *testing.T) {
	t.Setenv("GOCCL_LAUNCHER", "none")
	s, wrong := &seat{}, errors.New("wrong")
	unknown := func(context.Context) (Bootstrap, bool, error) { return nil, false, wrong }
	known := func(context.Context) (Bootstrap, bool, error) { return s, true, nil }
	fails := func(context.Context) (Bootstrap, bool, error) { return nil, true, wrong }

	withLaunchers(t, unknown, known, fails)
	b, done, err := Launched(t.Context())
	require.NoError(t, err)
	assert.Same(t, s, b)
	assert.False(t, s.closed)
	done()
	assert.True(t, s.closed)

	withLaunchers(t, unknown, fails, known)
	_, _, err = Launched(t.Context())
	require.ErrorIs(t, err, wrong)
	_, err = Join(t.Context(), nil)
	require.ErrorIs(t, err, wrong)

	withLaunchers(t, unknown)
	b, done, err = Launched(t.Context())
	require.NoError(t, err)
	assert.IsType(t, &boot.Boot{}, b)
	assert.Equal(t, 1, b.Size())
	done()
	c, err := Join(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, "world", c.Name())
	require.NoError(t, c.Close())
}

// What NewComm refuses by itself it tells the other ranks, by the Bootstrap.
func TestNewCommRefuses(t *testing.T) {
	_, err := NewComm(t.Context(), nil, nil)
	require.EqualError(t, err, "ccl: NewComm: the Bootstrap is nil; Join finds one")
	for name, tc := range map[string]struct {
		o    *Options
		env  [2]string
		want string
	}{
		"backend":   {&Options{Backend: "abacus"}, [2]string{}, `there is no backend "abacus"; there are cpu, nccl, rccl, oneccl, mpi`},
		"check":     {&Options{Check: 9}, [2]string{}, "Check is 9; the levels are CheckAsync, CheckStrict and CheckOff"},
		"stall":     {nil, [2]string{"GOCCL_STALL_WARN", "soon"}, "GOCCL_STALL_WARN=soon: it takes a duration such as 30s, or a number of seconds; 0 means never"},
		"checksum":  {nil, [2]string{"GOCCL_CHECKSUM", "maybe"}, "GOCCL_CHECKSUM=maybe: it takes 1 or 0"},
		"wire":      {&Options{Wire: "tls"}, [2]string{}, `Options.Wire is "tls"; it is plain, auth or encrypt`},
		"wires":     {nil, [2]string{"GOCCL_WIRE", "tls"}, "GOCCL_WIRE=tls: it takes one of plain, auth, encrypt"},
		"log":       {nil, [2]string{"GOCCL_LOG", "loud"}, "GOCCL_LOG=loud: it takes one of all, debug, info, warn, error, quiet"},
		"misspelt":  {nil, [2]string{"GOCCL_CHEKSUM", "1"}, "GOCCL_CHEKSUM is not a variable of goccl; did you mean GOCCL_CHECKSUM?"},
		"silence":   {&Options{PeerTimeout: time.Second - 1}, [2]string{}, "Options.PeerTimeout is 999.999999ms; it is at least 1s, 0 for 5s, or negative for never"},
		"algorithm": {nil, [2]string{"GOCCL_ALGO", "nonsense"}, "GOCCL_ALGO"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.env[0] != "" {
				t.Setenv(tc.env[0], tc.env[1])
			}
			s := &seat{}
			_, err := NewComm(t.Context(), s, tc.o)
			require.ErrorIs(t, err, ErrArgument)
			require.ErrorContains(t, s.refused, tc.want)
			require.ErrorContains(t, err, s.refused.Error())
		})
	}
}

// Why a Comm was not made is told as an Error of NewComm; what the bootstrap says keeps its own words.
func TestNewCommError(t *testing.T) {
	late := errors.New("late")
	assert.Equal(t, &Error{Code: ErrTimeout, Op: "NewComm", Rank: 2, Peer: 3, Missing: []int{3}, Err: late},
		newCommError(2, &call.Fault{Code: call.Timeout, Peer: 3, Missing: []int{3}, Err: late}))
	be := &boot.Error{Code: boot.Lost, Rank: 1, Peer: 0, Text: "rank 0 was lost"}
	assert.Equal(t, bootError(be), newCommError(1, &call.Fault{Code: call.Backend, Peer: -1, Err: be}))
}
