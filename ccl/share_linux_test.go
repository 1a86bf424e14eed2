package ccl_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

func init() { roles["sharing"] = shares }

// shares is a rank that may be denied what sharing memory needs.
func shares(ctx context.Context, t *testing.T, role string) {
	b, err := boot.Env(ctx)
	require.NoError(t, err)
	defer b.Close()
	for _, d := range strings.Fields(role) {
		if who, what, ok := strings.Cut(d, ":"); ok && (who == "*" || who == strconv.Itoa(b.Rank())) {
			deny(t, denied[what])
		}
	}
	var bs ccl.Bootstrap = b
	if role == "crammed" && b.Rank() == 1 {
		bs = &eventful{b, 2, cram}
	}
	if role == "late" && b.Rank() == 1 {
		bs = &eventful{b, 1, func() { time.Sleep(time.Second) }}
	}
	if role == "refuses" && b.Rank() == 2 {
		os.Setenv("GOCCL_STALL_WARN", "banana")
	}
	var log bytes.Buffer
	c, err := ccl.NewComm(ctx, bs, &ccl.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		fmt.Printf("rank %d: %v\n", b.Rank(), err)
		return
	}
	if role == "split" {
		splitCrammed(ctx, c)
		return
	}
	sum := []int{1}
	err = ccl.AllReduce(ctx, c, sum, sum, ccl.Sum)
	from := []int{-1}
	in := ccl.LinkTo(c, (c.Rank()+c.Size()-1)%c.Size(), 5).Recv(ccl.BufOf(from))
	out := ccl.LinkTo(c, (c.Rank()+1)%c.Size(), 5).Send(ccl.BufOf([]int{c.Rank()}))
	messages := errors.Join(out.Wait(ctx), in.Wait(ctx))
	fmt.Printf("rank %d: %s; %d hosts; sum %d %v; message of rank %d %v; %s\n", c.Rank(), c.Transport(), c.Place().Nodes, sum[0], err, from[0], messages, &log)
	require.NoError(t, ccl.Barrier(ctx, c))
	c.Close()
}

// eventful is a bootstrap with which something happens after its at-th AllGather.
type eventful struct {
	*boot.Boot
	at int
	do func()
}

func (e *eventful) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	all, err := e.Boot.AllGather(ctx, mine)
	if e.at--; e.at == 0 {
		e.do()
	}
	return all, err
}

// cram leaves this process no more memory to map.
func cram() {
	var held sync.WaitGroup
	release := make(chan bool)
	for range 16 { // so many threads the runtime has to spare then
		held.Add(1)
		go func() {
			runtime.LockOSThread()
			held.Done()
			<-release
			runtime.UnlockOSThread()
		}()
	}
	held.Wait()
	close(release)
	var pages uint64
	statm, _ := os.ReadFile("/proc/self/statm")
	fmt.Sscan(string(statm), &pages)
	setSpace(pages * uint64(os.Getpagesize()))
}

func setSpace(n uint64) {
	var l unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_AS, &l)
	l.Cur = min(n, l.Max)
	unix.Setrlimit(unix.RLIMIT_AS, &l)
}

// splitCrammed splits c while rank 1 cannot map memory, and after that.
func splitCrammed(ctx context.Context, c *ccl.Comm) {
	if c.Rank() == 1 {
		cram()
	}
	_, err := c.Split(ctx, 0, 0)
	if c.Rank() == 1 {
		setSpace(1 << 62)
	}
	fmt.Printf("rank %d: %v\n", c.Rank(), err)
	d, err := c.Split(ctx, 0, 0)
	if err == nil {
		err = ccl.Barrier(ctx, d)
	}
	fmt.Printf("rank %d: then %v\n", c.Rank(), err)
}

var denied = map[string]uint32{"memfd": unix.SYS_MEMFD_CREATE, "fallocate": unix.SYS_FALLOCATE, "recvmsg": unix.SYS_RECVMSG}

// deny makes a system call fail with EPERM in this process from now on, as sandboxes do.
func deny(t testing.TB, call uint32) {
	require.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: call},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := syscall.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	require.Zero(t, errno)
}

// sharing runs n processes and returns what they printed, a line for each rank, in order.
func sharing(t *testing.T, n int, role string) []string {
	text, err := spawned(t, n, 0, "sharing", role)
	require.NoError(t, err, text)
	var lines []string
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, "rank ") {
			lines = append(lines, l)
		}
	}
	slices.Sort(lines)
	return lines
}

// A rank that cannot map the memory of a new Comm is an error of all, and not of it alone.
func TestCrammedRank(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector needs the address space that this test takes away")
	}
	lines := sharing(t, 3, "crammed")
	require.Len(t, lines, 3)
	for _, l := range lines {
		assert.Regexp(t, `^rank \d: ccl: rank \d: NewComm: (rank 1: )?shared memory: cannot map \d+ KiB: cannot allocate memory`, l)
	}
	lines = sharing(t, 3, "split")
	require.Len(t, lines, 6)
	for r := range 3 {
		assert.Regexp(t, fmt.Sprintf(`^rank %d: ccl: rank %[1]d: Split: .*cannot allocate memory`, r), lines[2*r])
		assert.Equal(t, fmt.Sprintf("rank %d: then <nil>\n", r), lines[2*r+1])
	}
}

// Where sharing memory is not allowed, ranks use TCP at once, and one tells why.
func TestNoSharing(t *testing.T) {
	for _, tc := range []struct {
		role  string
		hosts int
		why   string // what is told
	}{
		{"*:memfd", 4, "rank 0: .*memfd_create: operation not permitted"},
		{"0:memfd", 2, "rank 0: .*memfd_create: operation not permitted"},
		{"0:fallocate", 2, "rank 0: .*operation not permitted"},
		{"2:fallocate", 2, "rank 2: .*operation not permitted"},
		{"1:recvmsg 3:recvmsg", 3, "rank 1: .*operation not permitted"},
	} {
		t.Run(tc.role, func(t *testing.T) {
			began := time.Now()
			lines := sharing(t, 4, tc.role)
			require.Len(t, lines, 4)
			for r, l := range lines {
				assert.Regexp(t, fmt.Sprintf(`^rank %d: .*TCP.*; %d hosts; sum 4 <nil>; message of rank %d <nil>`, r, tc.hosts, (r+3)%4), l)
				assert.Equal(t, r == 0, strings.Contains(l, "level=WARN"), "rank %d should tell once: %s", r, l)
			}
			assert.Regexp(t, "cannot share memory.*"+tc.why, lines[0])
			assert.Less(t, time.Since(began), 15*time.Second)
		})
	}
}

// What is wrong with one rank's environment all ranks are told.
func TestRefusalIsTold(t *testing.T) {
	lines := sharing(t, 4, "refuses")
	require.Len(t, lines, 4)
	for r, l := range lines {
		assert.Contains(t, l, "GOCCL_STALL_WARN=banana", "rank %d", r)
		if r != 2 {
			assert.Regexp(t, `rank 2 \(host .*, pid \d+\) gave up`, l)
		}
	}
}

var doors = regexp.MustCompile(`@(goccl-\S+)$`)

// strangers connect with every socket of a job's that they find, until ctx ends. They say nothing, or ask for the memory
// as if they were rank 1. What they are given they count.
func strangers(ctx context.Context, given *int) {
	var all []*net.UnixConn
	seen := map[string]bool{}
	for ctx.Err() == nil {
		f, err := os.Open("/proc/net/unix")
		if err != nil {
			return
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			m := doors.FindStringSubmatch(s.Text())
			if m == nil || seen[m[1]] {
				continue
			}
			seen[m[1]] = true
			for i := range 6 {
				c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: "@" + m[1], Net: "unix"})
				if err != nil {
					break
				}
				if !listensHere(c) { // another job's, on a machine that runs several
					c.Close()
					break
				}
				all = append(all, c)
				switch i {
				case 0:
					c.Write([]byte{1, 0, 0, 0})
				case 1:
					c.Write(append([]byte{1, 0, 0, 0}, make([]byte, 32)...))
				}
			}
		}
		f.Close()
		time.Sleep(time.Millisecond)
	}
	for _, c := range all {
		oob := make([]byte, 64)
		c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, n, _, _, err := c.ReadMsgUnix(make([]byte, 64), oob); err == nil && n > 0 {
			*given++
		}
		c.Close()
	}
}

// listensHere reports whether a process that this one has started listens at the other end of c.
func listensHere(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err != nil {
		return false
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cred.Pid))
	return bytes.Contains(status, fmt.Appendf(nil, "PPid:\t%d\n", os.Getpid()))
}

// Strangers at the door of a host's memory get nothing, and hold up nobody.
func TestStrangersAtDoor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	given := 0
	var wg sync.WaitGroup
	wg.Go(func() { strangers(ctx, &given) })
	lines := sharing(t, 4, "late")
	cancel()
	wg.Wait()
	require.Len(t, lines, 4)
	for r, l := range lines {
		assert.Equal(t, fmt.Sprintf("rank %d: shared memory; 1 hosts; sum 4 <nil>; message of rank %d <nil>; \n", r, (r+3)%4), l)
	}
	assert.Zero(t, given, "descriptors given to strangers")
}
