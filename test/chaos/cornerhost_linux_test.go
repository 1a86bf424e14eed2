//go:build fault

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/goccl/goccl/test/internal/leftover"
)

// starve takes from this process the right to open more files than it has; undo gives it back.
func starve() (undo func()) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		panic(err)
	}
	now := was
	now.Cur = uint64(leftover.Files())
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		panic(err)
	}
	return func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) }
}

// attack connects to every socket at which a process of the case listens, again and again, and says nothing, something
// that makes no sense, or good-bye.
func (k *corner) attack(ctx context.Context) {
	rnd := rand.New(rand.NewPCG(k.seed, 1))
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	var dial net.Dialer
	for ctx.Err() == nil {
		for _, at := range k.listening() {
			network, address, _ := strings.Cut(at, " ")
			inner, stop := context.WithTimeout(ctx, 50*time.Millisecond)
			c, err := dial.DialContext(inner, network, address)
			stop()
			if err != nil {
				continue
			}
			switch rnd.IntN(3) {
			case 0: // silence
				open = append(open, c)
				if len(open) > 200 {
					open[0].Close()
					open = open[1:]
				}
			case 1:
				b := make([]byte, 1+rnd.IntN(300))
				for i := range b {
					b[i] = byte(rnd.Uint32())
				}
				_ = c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
				_, _ = c.Write(b)
				open = append(open, c)
			default:
				c.Close()
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// listening is where the processes of the case listen: "unix @name" and "tcp address".
func (k *corner) listening() (places []string) {
	inodes := k.sockets()
	if len(inodes) == 0 {
		return nil
	}
	text, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(text)) {
		// Num RefCount Protocol Flags Type St Inode Path
		f := strings.Fields(line)
		if len(f) == 8 && f[3] == "00010000" && inodes[f[6]] {
			places = append(places, "unix "+f[7])
		}
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			// sl local_address rem_address st .. inode
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" || !inodes[f[9]] {
				continue
			}
			var port int
			_, hex, _ := strings.Cut(f[1], ":")
			if _, err := fmt.Sscanf(hex, "%X", &port); err == nil {
				places = append(places, fmt.Sprintf("tcp 127.0.0.1:%d", port))
			}
		}
	}
	return places
}

// sockets are the inodes of the sockets that processes of the case have open.
func (k *corner) sockets() map[string]bool {
	mark := fmt.Appendf(nil, "CHAOS_CORNER=%d\x00", k.seed)
	inodes := map[string]bool{}
	processes, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, p := range processes {
		env, _ := os.ReadFile(p)
		if !bytes.Contains(append(env, 0), mark) {
			continue
		}
		files, _ := filepath.Glob(filepath.Join(filepath.Dir(p), "fd", "*"))
		for _, f := range files {
			if at, err := os.Readlink(f); err == nil && strings.HasPrefix(at, "socket:[") {
				inodes[strings.TrimSuffix(strings.TrimPrefix(at, "socket:["), "]")] = true
			}
		}
	}
	return inodes
}
