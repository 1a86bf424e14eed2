package ccl_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// TestRelayedProcess is not a test of its own: it is the program whose processes TestRelay starts. They grow until all
// are one job, add, and then lose the relay.
func TestRelayedProcess(t *testing.T) {
	if os.Getenv("CCL_TEST_RELAYED") == "" {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	c, err := ccl.Join(ctx, &ccl.Options{Backend: "cpu"})
	require.NoError(t, err)
	for c.Size() < 2 {
		next, err := ccl.GrowAll(ctx, c, 2)
		require.NoError(t, err)
		if next != c {
			require.NoError(t, c.Close())
			c = next
		}
	}
	sum, mine := make([]float32, 300_000), make([]float32, 300_000)
	for i := range mine {
		mine[i] = float32(c.Rank() + 1)
	}
	require.NoError(t, ccl.AllReduce(ctx, c, sum, mine, ccl.Sum))
	for _, x := range sum {
		require.Equal(t, float32(3), x)
	}
	fmt.Println("added")
	for err == nil {
		err = ccl.AllReduce(ctx, c, sum, mine, ccl.Sum)
	}
	fmt.Println("ended:", err)
}

// Two processes whose addresses lead nowhere meet through a relay, and add; once the relay has died each says that the
// other is lost, and names the relay.
func TestRelay(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits until dials have failed")
	}
	t.Setenv("GOCCL_SECRET", oneSecret)
	hall, err := boot.ListenHall("127.0.0.1:0", nil)
	require.NoError(t, err)
	defer hall.Close()
	relay, err := boot.ListenRelay("127.0.0.1:0", nil, &boot.RelayOptions{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer relay.Close()
	type process struct {
		*exec.Cmd
		err  bytes.Buffer
		said chan string
	}
	var all []*process
	for i := range 2 {
		p := &process{Cmd: exec.Command(os.Args[0], "-test.run=^TestRelayedProcess$"), said: make(chan string, 2)}
		p.Env = append(os.Environ(), "CCL_TEST_RELAYED=1", "GOCCL_HALL="+hall.Addr(), "GOCCL_RELAY="+relay.Addr(), "GOCCL_ADVERTISE=192.0.2.1",
			fmt.Sprint("GOCCL_HOSTID=host", i))
		p.Stderr = &p.err
		out, err := p.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, p.Start())
		t.Cleanup(func() { p.Process.Kill() })
		go func() {
			defer close(p.said)
			var text strings.Builder
			b := make([]byte, 4096)
			for {
				n, err := out.Read(b)
				text.Write(b[:n])
				for {
					line, rest, is := strings.Cut(text.String(), "\n")
					if !is {
						break
					}
					p.said <- line
					text.Reset()
					text.WriteString(rest)
				}
				if err != nil {
					return
				}
			}
		}()
		all = append(all, p)
	}
	for _, p := range all {
		require.Equal(t, "added", <-p.said)
	}
	relay.Close()
	for _, p := range all {
		said := <-p.said
		require.Regexp(t, "ended: ccl: rank (0: .*rank 1|1: .*rank 0) lost: ", said)
		require.Contains(t, said, "the relay at "+relay.Addr())
	}
	for _, p := range all {
		for range p.said {
		}
		p.Wait()
		require.Contains(t, p.err.String(), "is reached through the relay at "+relay.Addr())
	}
}
