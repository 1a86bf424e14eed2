package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The meter says how far a run is, at most five times a second, and gives way to every line.
func TestMeter(t *testing.T) {
	var b bytes.Buffer
	at := time.Unix(100, 0)
	began := at
	m := &meter{lines: &b, screen: &b, now: func() time.Time { return at }}
	m.step(0, 1, 1000, began)
	m.step(0, 2, 1000, began) // too soon after
	at = at.Add(10 * time.Second)
	m.step(0, 100, 1000, began)
	_, err := m.Write([]byte("step=100\n"))
	require.NoError(t, err)
	_, err = m.Write([]byte("more\n"))
	require.NoError(t, err)
	at = at.Add(100 * time.Second)
	m.step(50, 150, 1000, began) // 100 steps of its own in 110 s
	m.step(50, 1000, 1000, began)
	require.Equal(t, "\r\x1b[Kstep 1 of 1000, 0 %\r\x1b[Kstep 100 of 1000, 10 %, 1m30s left\r\x1b[Kstep=100\nmore\n"+
		"\r\x1b[Kstep 150 of 1000, 15 %, 15m35s left", b.String())

	b.Reset()
	m = &meter{lines: &b, now: time.Now}
	m.step(0, 1, 10, began)
	(*meter)(nil).step(0, 1, 10, began)
	require.Empty(t, b.String(), "nobody watches")
	require.Equal(t, "14s", remaining(14400*time.Millisecond))
}

// A pipe, a file and /dev/null are no terminals; a rank of -np knows from its environment.
func TestWatched(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	require.False(t, terminal(null))
	file, err := os.Create(t.TempDir() + "/x")
	require.NoError(t, err)
	defer file.Close()
	require.False(t, terminal(file))
	was := os.Stderr
	defer func() { os.Stderr = was }()
	os.Stderr = file // which package testing makes the same as os.Stdout in some runs
	for name, want := range map[string]*os.File{"stdout": os.Stdout, "stderr": os.Stderr, "none": nil} {
		t.Setenv(screenEnv, name)
		require.Equal(t, name, watched())
		require.Equal(t, want, output(name))
	}
}
