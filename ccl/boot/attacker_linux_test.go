package boot

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// What other accounts of a host, and strangers on the network, may try against a job that starts.

func init() {
	roles["shared store"] = func(string) int { // two ranks that meet in a directory
		ctx, cancel := context.WithTimeout(context.Background(), long)
		defer cancel()
		_, errs := all(2, func(r int) (*Boot, error) {
			b, err := File(ctx, os.Getenv("BOOT_TEST_DIR"), "job", r, 2)
			if err == nil {
				defer b.Close()
				_, err = b.AllGather(ctx, []byte{1})
			}
			return nil, err
		})
		fmt.Println(errs[0], errs[1])
		return 0
	}
	roles["flooded"] = func(string) int { // rank 0 has 1,024 descriptors; the others join once a line has come
		low := syscall.Rlimit{Cur: 1024, Max: 1024}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
			fmt.Println(err)
			return 1
		}
		ctx, cancel := context.WithTimeout(context.Background(), long)
		defer cancel()
		flooded := make(chan struct{})
		go func() {
			bufio.NewReader(os.Stdin).ReadString('\n')
			for range 600 { // what the rest of the job needs: more than half
				f, err := os.Open(os.DevNull)
				if err != nil {
					fmt.Println("no descriptors are left:", err)
					break
				}
				defer f.Close()
			}
			close(flooded)
		}()
		_, errs := all(3, func(r int) (*Boot, error) {
			if r > 0 {
				<-flooded
			}
			b, err := TCP(ctx, os.Getenv("BOOT_TEST_ROOT"), r, 3, &TCPOptions{Secret: []byte("a secret of sixteen"), HostID: fmt.Sprint("host ", r)})
			if err == nil {
				defer b.Close()
				_, err = b.AllGather(ctx, []byte{1})
			}
			return nil, err
		})
		fmt.Println(errs[0], errs[1], errs[2])
		return 0
	}
}

// bindOnly takes an abstract name, and does not listen there.
func bindOnly(t *testing.T, name string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: name}))
}

// Somebody has the name where the ranks of this host would meet, and does not serve there, or talks
// nonsense: each goes to rank 0 itself.
func TestTakenNameHoldsUpNobody(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, name string){
		"bound": bindOnly,
		"served by a stranger": func(t *testing.T, name string) {
			l, err := net.Listen("unix", name)
			require.NoError(t, err)
			answering(t, l, func(c net.Conn) {
				io.WriteString(c, "what is it that you want of me? "+strconv.Itoa(1<<20))
				io.Copy(io.Discard, c)
			})
		},
	} {
		for _, secret := range []string{"", "a secret of sixteen"} {
			t.Run(name+", secret "+strconv.Quote(secret), func(t *testing.T) {
				noLeaks(t)
				root := freeRoot(t)
				take(t, hostSocket("", root, ""))
				boots := joined(t, 4, func(r int) (*Boot, error) {
					return TCP(within(t, long), root, r, 4, &TCPOptions{Secret: []byte(secret)})
				})
				swap(t, boots)
			})
		}
	}
}

// Somebody has all names at which the ranks of a job on one host would meet: they meet in a directory of their user's.
func TestAllNamesTaken(t *testing.T) {
	own, shared, long107 := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), strings.Repeat("x", 107))
	require.NoError(t, os.Chmod(own, 0o755)) // as homes are
	require.NoError(t, os.Chmod(shared, 0o777))
	require.NoError(t, os.Mkdir(long107, 0o700))
	link := filepath.Join(own, "link")
	require.NoError(t, os.Symlink(own, link))
	for _, tc := range []struct {
		name               string
		runtime, home, tmp string
		works              bool
	}{
		{"home", "", own, shared + "/none", true},
		{"the directory of the session", own, shared, shared + "/none", true},
		{"a home that is a link", "", link, shared + "/none", true},
		{"a home that others may write to", "", shared, shared + "/none", false},
		{"a home whose name is too long for a socket", "", long107, shared + "/none", false},
		{"the directory for all", "", "/nonexistent", shared, true},
		{"none", "", "", shared + "/none", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			noLeaks(t)
			t.Setenv("TMPDIR", tc.tmp)
			job := fmt.Sprint("taken ", os.Getpid(), t.Name())
			for i := range tries {
				bindOnly(t, localName("test", job, strconv.Itoa(i)))
			}
			getenv := func(name string) string {
				return map[string]string{"XDG_RUNTIME_DIR": tc.runtime, "HOME": tc.home}[name]
			}
			start := func(ctx context.Context, r int) (*Boot, error) {
				m := &joinConfig{job: job, rank: r, size: 3, secret: noSecret}
				m.here(getenv, "test")
				return m.join(ctx)
			}
			if !tc.works {
				_, err := start(within(t, long), 0)
				wantError(t, err, System, 0, -1)
				require.ErrorContains(t, err, "rank 0 cannot listen at any of")
				return
			}
			boots := joined(t, 3, func(r int) (*Boot, error) { return start(within(t, long), r) })
			swap(t, boots)
			require.Equal(t, boots[0].Secret(), boots[2].Secret())
		})
	}
}

// as starts this test's binary in a role, with other attributes; the environment is env alone.
func as(t *testing.T, role string, attr *syscall.SysProcAttr, env ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(within(t, long), "/proc/self/exe") // whose directory another user need not see
	cmd.Env = append(env, "BOOT_TEST_ROLE="+role)
	cmd.SysProcAttr = attr
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

// user has a child run as a user of that number.
func user(uid uint32) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
}

// In a directory as /tmp another user has made what rank 0 would make: the ranks meet all the same.
func TestPlantedStore(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("hardware: two other users need root")
	}
	const victim, attacker = 4201, 4202
	dir, err := os.MkdirTemp("", "goccl-boot-test-")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	for _, tc := range []struct {
		name string
		dirs []string // that are planted
	}{
		{"the file", nil},
		{"the directory", []string{"goccl-4201"}},
		{"a link to the victim's", []string{"goccl-4201"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := filepath.Join(dir, strings.ReplaceAll(tc.name, " ", "-"))
			require.NoError(t, os.Mkdir(store, 0o777))
			require.NoError(t, os.Chmod(dir, 0o755))
			require.NoError(t, os.Chmod(store, 0o777|os.ModeSticky))
			sum := sha256.Sum256([]byte("job"))
			planted := filepath.Join(store, "goccl-"+hex.EncodeToString(sum[:8]))
			require.NoError(t, os.WriteFile(planted, nil, 0o600))
			require.NoError(t, os.Chown(planted, attacker, attacker))
			for _, name := range tc.dirs {
				path := filepath.Join(store, name)
				if strings.HasPrefix(tc.name, "a link") {
					home := filepath.Join(dir, "home")
					require.NoError(t, os.Mkdir(home, 0o755))
					require.NoError(t, os.Chown(home, victim, victim))
					require.NoError(t, os.Symlink(home, path))
				} else {
					require.NoError(t, os.Mkdir(path, 0o777))
				}
				require.NoError(t, os.Lchown(path, attacker, attacker))
			}
			cmd, out := as(t, "shared store", user(victim), "BOOT_TEST_DIR="+store)
			require.NoError(t, cmd.Run(), out)
			require.Equal(t, "<nil> <nil>\n", out.String())
			left, err := filepath.Glob(filepath.Join(store, "*", "goccl-*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// slurmStep is the environment of a rank of a step on one host.
func slurmStep(job string, rank int) []string {
	r := strconv.Itoa(rank)
	return []string{"HOME=/nonexistent", "SLURM_JOB_ID=" + job, "SLURM_STEP_ID=0", "SLURM_PROCID=" + r, "SLURM_NTASKS=2", "SLURM_STEP_NUM_TASKS=2",
		"SLURM_LOCALID=" + r, "SLURM_NODEID=0", "SLURM_STEP_NUM_NODES=1", "SLURM_NNODES=1", "SLURM_STEP_TASKS_PER_NODE=2", "SLURM_STEP_NODELIST=n1",
		"GOCCL_BOOT_TIMEOUT=20s"}
}

// Two users, each the overflow user of a user namespace of its own, are not one: without a secret neither gets into the
// other's job, and both hear why. With one they may be ranks of a job.
func TestOverflowUsersAreNotOne(t *testing.T) {
	ids := [2]int{os.Getuid(), os.Getuid()}
	if os.Getuid() == 0 {
		ids = [2]int{4201, 4202}
	}
	pair := func(t *testing.T, env ...string) (outs [2]*bytes.Buffer) {
		var wg sync.WaitGroup
		job := fmt.Sprint(os.Getpid(), len(env))
		for r := range 2 {
			cmd, out := as(t, "join", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true},
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 65534, HostID: ids[r], Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 65534, HostID: ids[r], Size: 1}}}, append(slurmStep(job, r), env...)...)
			if err := cmd.Start(); err != nil {
				t.Skipf("hardware: no user namespaces: %v", err)
			}
			outs[r] = out
			wg.Go(func() { cmd.Wait() })
		}
		wg.Wait()
		return outs
	}
	for r, out := range pair(t) {
		require.Contains(t, out.String(), fmt.Sprintf("rank %d of 2: this job has no secret, and its ranks cannot be told from strangers", r))
		require.Contains(t, out.String(), "give all ranks the same GOCCL_SECRET_FILE")
	}
	for r, out := range pair(t, "GOCCL_SECRET=a secret of sixteen") {
		require.Contains(t, out.String(), fmt.Sprintf("%d of 2 at ", r))
	}
}

// A flood of silent connections at rank 0's port takes neither all of its descriptors nor the job's time.
func TestFloodOfRankZero(t *testing.T) {
	const strangers = 1500
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if limit.Cur < strangers+200 {
		t.Skipf("hardware: %d descriptors are too few for a flood", limit.Cur)
	}
	root := freeRoot(t)
	cmd, out := as(t, "flooded", nil, "BOOT_TEST_ROOT="+root)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ctx := within(t, long)
	for n := 0; n < strangers; {
		c, err := net.Dial("tcp", root)
		if err != nil {
			require.NoError(t, ctx.Err())
			time.Sleep(time.Millisecond)
			continue // rank 0 does not listen yet
		}
		defer c.Close()
		n++
	}
	io.WriteString(in, "\n")
	require.NoError(t, cmd.Wait(), out)
	require.Equal(t, "<nil> <nil> <nil>\n", out.String())
}

// Who tries secrets is counted, and the log says from where.
func TestGuessesAreCounted(t *testing.T) {
	noLeaks(t)
	h, root, _ := rootFor(t, 2, "job", "a secret of sixteen")
	f := &dialer{job: "job", self: selfJoin(1, 2)}
	for i := range 5 {
		r := f.sweep(within(t, long), point{network: "tcp", addrs: []string{root}, secret: secretOf(fmt.Sprint("a secret of guess ", i))})
		require.ErrorIs(t, r.err, auth.ErrUnauthorized)
	}
	require.Eventually(t, func() bool { return h.doors.refused() == 5 }, long, time.Millisecond)
}

// Ranks of one host in containers of their own, which share its network: without a secret they are told to have one, and with
// one they are a job.
func TestContainersNeedASecret(t *testing.T) {
	start := func(t *testing.T, r int, env ...string) (*exec.Cmd, *bufio.Reader) {
		cmd, _ := as(t, "join", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, append(slurmStep(fmt.Sprint("pods ", os.Getpid(), env), r), env...)...)
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		}
		cmd.Stdout, cmd.Stderr = nil, nil
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		cmd.Stderr = cmd.Stdout
		if err := cmd.Start(); err != nil {
			t.Skipf("hardware: no PID namespaces: %v", err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
		return cmd, bufio.NewReader(out)
	}
	for _, secret := range []string{"", "GOCCL_SECRET=a secret of sixteen"} {
		t.Run(secret, func(t *testing.T) {
			start(t, 0, "GOCCL_BOOT_TIMEOUT=1h", secret)
			_, one := start(t, 1, "GOCCL_BOOT_TIMEOUT=1h", secret)
			line, err := one.ReadString('\n')
			require.NoError(t, err, line)
			if secret == "" {
				require.Contains(t, line, "is not taken for a rank: the kernel does not tell whose process this is: it runs in another container (PID namespace)")
				require.Contains(t, line, "give all ranks the same GOCCL_SECRET_FILE")
			} else {
				require.Contains(t, line, "1 of 2 at ")
			}
		})
	}
}
