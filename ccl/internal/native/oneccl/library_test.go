//go:build oneccl && cgo && linux

package oneccl

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
)

// What the library says is one line, without its stack trace, and names the call.
func TestFailure(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"bad  size\n at  rank\x00rest": "bad size at rank",
		"no peer [oneCCL ERROR Stacktrace] 0x1 0x2": "no peer",
	} {
		require.Equal(t, want, clean([]byte(text)))
	}
	l := &library{version: "oneCCL 2021.17.2"}
	require.NoError(t, l.failure("onecclSend", 0, []byte("of an earlier call")))
	var e *engine.LibraryError
	require.ErrorAs(t, l.failure("onecclSend", 3, []byte("no peer\x00")), &e)
	require.Equal(t, &engine.LibraryError{Library: "oneCCL 2021.17.2", Call: "onecclSend", Result: 3, Text: "no peer"}, e)
	l.fabric = errors.New("libfabric is not installed")
	require.NotErrorIs(t, l.failure("onecclSend", 3, []byte("no peer")), l.fabric)
	require.ErrorIs(t, l.failure("onecclCommInitRank", 3, []byte("cannot open transport")), l.fabric, "which may be why")
}

// Two ranks of a process that join with one id both hear that they are two; others do not.
func TestJoinTwice(t *testing.T) {
	l := &library{joining: map[string]chan struct{}{}}
	twice, leave, err := l.join("a")
	require.NoError(t, err)
	other, leaveOther, err := l.join("b")
	require.NoError(t, err)
	for range 2 {
		_, _, err = l.join("a")
		require.Equal(t, errTwoRanks, err)
	}
	<-twice
	select {
	case <-other:
		t.Fatal("another id")
	default:
	}
	leave()
	leaveOther()
	_, leave, err = l.join("a")
	require.NoError(t, err, "the first one has left")
	leave()
	require.Empty(t, l.joining)
}

// What no communicator can be is refused without a call: oneCCL would hang.
func TestNewRefuses(t *testing.T) {
	noDevice := errors.New("there is none")
	id := make([]byte, idBytes)
	for _, tc := range []struct {
		cpu  error
		g    engine.Group
		id   []byte
		want string
	}{
		{noDevice, engine.Group{Size: 1, Device: -1}, id[:1], "oneCCL's ids have 4096 bytes, not 1"},
		{noDevice, engine.Group{Size: 2, Rank: 2, Device: -1}, id, "rank 2 of 2: a rank is at least 0 and less than the number of ranks"},
		{noDevice, engine.Group{Size: 0, Device: -1}, id, "rank 0 of 0: a rank is at least 0 and less than the number of ranks"},
		{noDevice, engine.Group{Size: 1, Device: 0}, id, "device 0: oneCCL runs on its CPU plugin here: there is none"},
		{nil, engine.Group{Size: 1, Device: -1}, id, "oneCCL runs on devices here; there is no device -1"},
	} {
		e, err := (&library{cpu: tc.cpu}).New(t.Context(), tc.g, tc.id)
		require.Nil(t, e)
		require.EqualError(t, err, tc.want)
	}
}
