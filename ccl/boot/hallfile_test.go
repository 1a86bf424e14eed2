package boot

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A hall that is started again has what was set and added before, wherever its last process ended.
func TestHallFile(t *testing.T) {
	ctx, file := t.Context(), filepath.Join(t.TempDir(), "hall")
	for life := int64(1); life < 4; life++ {
		h, err := ListenHallFile("127.0.0.1:0", []byte("the secret of the test"), file)
		require.NoError(t, err)
		s, err := DialHall(h.Addr(), []byte("the secret of the test"))
		require.NoError(t, err)
		n, err := s.Add(ctx, "number", 1)
		require.NoError(t, err)
		require.Equal(t, life, n)
		if life > 1 {
			got, err := s.Get(ctx, "value")
			require.NoError(t, err)
			require.Equal(t, []byte{byte(life - 1)}, got)
		}
		require.NoError(t, s.Set(ctx, "value", []byte{0}))
		require.NoError(t, s.Set(ctx, "value", []byte{byte(life)}))
		require.NoError(t, h.Close())
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "others can read it")
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.Write(logEntry(request{what: askSet, key: "value", value: []byte{9}})[:2+8*life]) // the process ends here
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Less(t, len(whole), 250, "it grows with each start")
}

// A machine that stops may leave zeros at the end of the file, in the place of what was written last.
func TestHallFileEndsInZeros(t *testing.T) {
	for half := range 20 {
		file := filepath.Join(t.TempDir(), "hall")
		text := append(logEntry(request{what: askAdd, key: "a", n: 1}), logEntry(request{what: askAdd, key: "a", n: 1})[:half]...)
		require.NoError(t, os.WriteFile(file, append(text, make([]byte, 5000)...), 0o600))
		h, err := ListenHallFile("127.0.0.1:0", nil, file)
		require.NoError(t, err)
		n, err := h.Add(t.Context(), "a", 0)
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		require.NoError(t, h.Close())
	}
}

// A hall that is started a second time, at the address of the one that runs, leaves that its file.
func TestHallFileOfARunningHall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hall")
	first, err := ListenHallFile(apart(), nil, file)
	require.NoError(t, err)
	_, err = ListenHallFile(first.Addr(), nil, file)
	require.Error(t, err)
	require.NoError(t, first.Set(t.Context(), "key", []byte("value")))
	require.NoError(t, first.Close())
	again, err := ListenHallFile("127.0.0.1:0", nil, file)
	require.NoError(t, err)
	defer again.Close()
	require.True(t, again.has("key"), "what the first has taken is lost")
}

// Two halls never have one file, at whichever addresses, however close together they begin.
func TestHallFileOfTwoHalls(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("hardware: Windows has no flock")
	}
	file := filepath.Join(t.TempDir(), "hall")
	for range 20 {
		halls, refused := make(chan *Hall, 8), make(chan error, 8)
		var all sync.WaitGroup
		for range cap(halls) {
			all.Go(func() {
				if h, err := ListenHallFile("127.0.0.1:0", nil, file); err == nil {
					halls <- h
				} else {
					refused <- err
				}
			})
		}
		all.Wait()
		require.Len(t, halls, 1)
		h := <-halls
		n, err := h.Add(t.Context(), "number", 1)
		require.NoError(t, err)
		for len(refused) > 0 {
			err := <-refused
			require.Equal(t, System, asError(err).Code)
			require.ErrorContains(t, err, file+": another hall runs with it")
		}
		_, err = ListenHallFile("127.0.0.1:0", nil, file)
		require.ErrorContains(t, err, "another hall runs with it")
		again, err := h.Add(t.Context(), "number", 0)
		require.NoError(t, err)
		require.Equal(t, n, again)
		require.NoError(t, h.Close())
	}
	h, err := ListenHallFile("127.0.0.1:0", nil, file)
	require.NoError(t, err)
	defer h.Close()
	n, err := h.Add(t.Context(), "number", 0)
	require.NoError(t, err)
	require.EqualValues(t, 20, n, "a hall has lost what it took")
}

// The file of one job is not that of another.
func TestHallFileOfAnotherJob(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hall")
	for _, job := range []string{"", "a", "", "b\n"} {
		t.Setenv("GOCCL_JOB", job)
		h, err := ListenHallFile("127.0.0.1:0", nil, file)
		if job != "" {
			require.ErrorContains(t, err, "it belongs to a job without a name")
			continue
		}
		require.NoError(t, err)
		require.NoError(t, h.Close())
	}
}

// What is damaged in the middle, and what is no hall's file, is refused, and stays as it is.
func TestHallFileRefuses(t *testing.T) {
	good := append(logEntry(request{what: askAdd, key: "a", n: 1}), logEntry(request{what: askSet, key: "b", value: []byte("c")})...)
	damaged, longer := bytes.Clone(good), bytes.Clone(good)
	damaged[entryHead+4] ^= 1
	longer[2] ^= 1 // beyond the end of the file, as half an entry at the end is
	for name, text := range map[string][]byte{
		"a damaged entry": damaged, "a damaged length": longer, "another file": []byte("#!/bin/bash\necho this is no file of a hall\n"),
		"a request that changes nothing": append(logEntry(request{what: askGet, key: "a"}), good...),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "hall")
			require.NoError(t, os.WriteFile(file, text, 0o600))
			_, err := ListenHallFile("127.0.0.1:0", nil, file)
			require.ErrorContains(t, err, file)
			after, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, text, after)
			left, err := os.ReadDir(filepath.Dir(file))
			require.NoError(t, err)
			require.Len(t, left, 1)
		})
	}
	_, err := ListenHallFile("127.0.0.1:0", nil, filepath.Join(t.TempDir(), "nowhere", "hall"))
	require.Error(t, err)
}

// Whatever a file has, it is read or refused, and what is read is written so that it is read the same.
func FuzzHallFile(f *testing.F) {
	good := append(logEntry(request{what: askAdd, key: "a", n: 1}), logEntry(request{what: askSet, key: "b", value: []byte("c")})...)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte{0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, text []byte) {
		s := newMemoryStore()
		if s.replay(bufio.NewReader(bytes.NewReader(text))) != nil {
			return
		}
		var again bytes.Buffer
		for key, value := range s.values {
			again.Write(logEntry(request{what: askSet, key: key, value: value}))
		}
		for key, n := range s.numbers {
			again.Write(logEntry(request{what: askAdd, key: key, n: n}))
		}
		next := newMemoryStore()
		require.NoError(t, next.replay(bufio.NewReader(&again)))
		require.Equal(t, s.values, next.values)
		require.Equal(t, *s.held, *next.held)
	})
}

// apart is where a test listens that leaves a port and comes back to that: other programs take ports of 127.0.0.1.
func apart() string {
	if runtime.GOOS == "linux" { // which has all of 127.0.0.0/8
		return "127.0.77.1:0"
	}
	return "127.0.0.1:0"
}

// A hall has two addresses. It ends at the one, and is started again at the other, with the same file:
// clients go on, also one that has been connected, and one that waits. A hall that is silent is as one
// that has ended.
func TestHallTwice(t *testing.T) {
	secret, file := []byte("the secret of the test"), filepath.Join(t.TempDir(), "hall")
	silent, err := net.Listen("tcp", "127.0.0.1:0") // which takes connections up, and says nothing
	require.NoError(t, err)
	defer silent.Close()
	first, err := ListenHallFile(apart(), secret, file)
	require.NoError(t, err)
	free, err := net.Listen("tcp", apart())
	require.NoError(t, err)
	require.NoError(t, free.Close())
	places := []string{silent.Addr().String(), first.Addr(), free.Addr().String()}
	s, err := DialHall(strings.Join(places, ","), secret)
	require.NoError(t, err)
	s.(*hallClient).patience = time.Second
	n, err := s.Add(t.Context(), "number", 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	require.NoError(t, first.Close())
	_, err = s.Add(t.Context(), "number", 1)
	require.Equal(t, Lost, asError(err).Code, "%v", err)
	second, err := ListenHallFile(places[2], secret, file)
	require.NoError(t, err)
	defer second.Close()
	for i := range 3 {
		n, err = s.Add(t.Context(), "number", 1)
		require.NoError(t, err)
		require.EqualValues(t, 2+i, n)
	}
	_, err = DialHall(places[0]+",nowhere", secret)
	require.ErrorContains(t, err, `"nowhere" is no place of a hall`)
}
