package ccl_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/auth"
)

const (
	oneSecret   = "a secret of this test alone"
	otherSecret = "the secret of somebody else"
)

// public is a store that asks nobody who he is, as PyTorch's.
type public struct{ boot.Store }

// placed is a Bootstrap on a host, with a secret.
type placed struct {
	ccl.Bootstrap
	host   string
	secret []byte
	job    *string // its name, which goes in the clear
}

func (p placed) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	all, err := p.Bootstrap.AllGather(ctx, mine)
	if err == nil && *p.job == "" {
		*p.job = hex.EncodeToString(all[0][48:64])
	}
	return all, err
}

func (p placed) HostID() string { return p.host }
func (p placed) Secret() []byte { return p.secret }

// buffer takes what several ranks log.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// ways are the bootstraps of two ranks that bring no secret: NewComm completes it from the environment.
var ways = map[string]func(t *testing.T) [2]ccl.Bootstrap{
	"store": func(t *testing.T) (all [2]ccl.Bootstrap) {
		s := hallOf(t)
		for r := range all {
			b, err := boot.NewStore(s, "job", r, 2)
			require.NoError(t, err)
			all[r] = b
		}
		return all
	},
	"own": func(*testing.T) (all [2]ccl.Bootstrap) {
		for r, b := range boot.Local(2) {
			all[r] = bare{b}
		}
		return all
	},
}

func hallOf(t *testing.T) public {
	h, err := boot.ListenHall("127.0.0.1:0", nil)
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return public{h}
}

// startTwo makes the Comms of two ranks, with other secrets of their own where they have some, and closes them. It returns the errors, whether
// the job had a secret, and what was logged.
func startTwo(t *testing.T, all [2]ccl.Bootstrap, o ccl.Options, apart bool, own ...string) (errs [2]error, known bool, logged string) {
	var log buffer
	var ranks, open sync.WaitGroup
	open.Add(2)
	o.Backend, o.Log = "cpu", slog.New(slog.NewTextHandler(&log, nil))
	for r, b := range all {
		ranks.Go(func() {
			p := placed{b, "a", nil, new(string)}
			if apart {
				p.host = string(rune('a' + r))
			}
			if s, ok := b.(interface{ Secret() []byte }); ok {
				p.secret = s.Secret()
			}
			if own != nil {
				p.secret = []byte(own[r])
			}
			c, err := ccl.NewComm(t.Context(), p, &o)
			errs[r] = err
			if err == nil {
				x := []int32{1}
				assert.NoError(t, ccl.AllReduce(t.Context(), c, x, x, ccl.Sum))
				assert.Equal(t, []int32{2}, x)
				if r == 0 {
					if known = ccl.HasSecret(c); known && apart {
						turnedAway(t, c, *p.job)
					}
				}
			}
			open.Done()
			open.Wait()
			if c != nil {
				c.Close()
			}
		})
	}
	ranks.Wait()
	return errs, known, log.b.String()
}

// turnedAway has strangers come to a data port of the job, whose name they know: one with another secret, one with none.
func turnedAway(t *testing.T, c *ccl.Comm, job string) {
	none, err := auth.None(nil)
	assert.NoError(t, err)
	for _, s := range []auth.Secret{none, auth.Given([]byte(otherSecret))} {
		conn, err := net.Dial("tcp", ccl.DataPort(c).String())
		if !assert.NoError(t, err) {
			return
		}
		_, _, err = auth.Client(conn, job, s, []byte("hello"))
		assert.ErrorIs(t, err, auth.ErrUnauthorized)
		conn.Close()
	}
}

const openJob = "this job has no secret"

// A job whose bootstrap brings no secret has that of the environment; it is told that it has none, or refused, as under any launcher.
func TestSecretOfAnyBootstrap(t *testing.T) {
	for name, way := range ways {
		t.Run(name+", with a secret", func(t *testing.T) {
			all := way(t)
			t.Setenv("GOCCL_SECRET", oneSecret)
			t.Setenv("GOCCL_REQUIRE_SECRET", "1")
			for _, wire := range []string{"plain", "encrypt"} {
				errs, known, logged := startTwo(t, all, ccl.Options{Wire: wire}, true)
				require.Equal(t, [2]error{}, errs, wire)
				require.True(t, known, wire)
				require.NotContains(t, logged, openJob, wire)
				all = way(t)
			}
		})
		t.Run(name+", without", func(t *testing.T) {
			t.Setenv("GOCCL_SECRET", "")
			for _, apart := range []bool{true, false} {
				t.Setenv("GOCCL_SOCKET_IFNAME", "lo")
				errs, known, logged := startTwo(t, way(t), ccl.Options{}, apart)
				require.Equal(t, [2]error{}, errs)
				require.False(t, known)
				require.NotContains(t, logged, openJob, "nobody but this host can reach it")
			}
			t.Setenv("GOCCL_SOCKET_IFNAME", "")
			errs, _, logged := startTwo(t, way(t), ccl.Options{}, true)
			require.Equal(t, [2]error{}, errs)
			warns := 0
			if ccl.OtherInterface() {
				warns = 1
			}
			require.Equal(t, warns, strings.Count(logged, openJob+" (GOCCL_SECRET is set, but empty, which is none): anyone who can reach its ports can join it"), logged)
		})
		t.Run(name+", GOCCL_REQUIRE_SECRET", func(t *testing.T) {
			all := way(t)
			t.Setenv("GOCCL_REQUIRE_SECRET", "1")
			for _, apart := range []bool{true, false} {
				errs, _, _ := startTwo(t, all, ccl.Options{}, apart)
				for _, err := range errs {
					require.ErrorIs(t, err, ccl.ErrUnauthorized)
					require.ErrorContains(t, err, "GOCCL_REQUIRE_SECRET=1, but the job has no secret: give all ranks the same GOCCL_SECRET_FILE")
				}
			}
		})
		t.Run(name+", a wrong secret", func(t *testing.T) {
			errs, _, _ := startTwo(t, way(t), ccl.Options{}, true, oneSecret, "")
			for _, err := range errs {
				require.ErrorIs(t, err, ccl.ErrVersion)
				require.ErrorContains(t, err, "rank 1 differs from rank 0: secret (GOCCL_SECRET_FILE)=none there")
			}
			errs, _, _ = startTwo(t, way(t), ccl.Options{}, true, "short", "short")
			for _, err := range errs {
				require.ErrorIs(t, err, ccl.ErrArgument)
				require.ErrorContains(t, err, "it holds 5 bytes, and fewer than 16 can be guessed")
			}
		})
	}
}

// Ranks that boot.Env and boot.TCP have started are told by rank 0, whichever of them started that, that the job has no secret.
func TestOpenStartsWarn(t *testing.T) {
	if !ccl.OtherInterface() {
		t.Skip("hardware: no other host reaches this one")
	}
	t.Setenv("GOCCL_SECRET", "")
	t.Setenv("GOCCL_JOB", "open")
	t.Setenv("GOCCL_SIZE", "2")
	for env := range 2 {
		t.Run(fmt.Sprint("rank ", env, " by Env"), func(t *testing.T) {
			root := ""
			for root == "" { // below the ports that the kernel gives to other tests
				at := fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(15_000))
				if l, err := net.Listen("tcp", at); err == nil {
					root = at
					l.Close()
				}
			}
			t.Setenv("GOCCL_ROOT", root)
			t.Setenv("GOCCL_RANK", fmt.Sprint(env))
			t.Setenv("GOCCL_HOSTID", string(rune('a'+env)))
			var all [2]ccl.Bootstrap
			var both sync.WaitGroup
			for r := range all {
				both.Go(func() {
					var b *boot.Boot
					var err error
					if r == env {
						b, err = boot.Env(t.Context())
					} else {
						b, err = boot.TCP(t.Context(), root, r, 2, &boot.TCPOptions{Job: "open", HostID: string(rune('a' + r))})
					}
					if assert.NoError(t, err) {
						all[r] = b
					}
				})
			}
			both.Wait()
			require.False(t, t.Failed())
			errs, known, logged := startTwo(t, all, ccl.Options{}, true)
			for _, b := range all {
				b.(*boot.Boot).Close()
			}
			require.Equal(t, [2]error{}, errs)
			require.False(t, known)
			require.Equal(t, 1, strings.Count(logged, openJob), logged)
		})
	}
}

// A job that meets in a private store has the secret of that.
func TestSecretOfPrivateStore(t *testing.T) {
	t.Setenv("GOCCL_REQUIRE_SECRET", "1")
	for _, secret := range []string{"", oneSecret} {
		dir := t.TempDir()
		var all [2]ccl.Bootstrap
		for r := range all {
			s, err := boot.FileStore(dir, []byte(secret))
			require.NoError(t, err)
			b, err := boot.NewStore(s, "job", r, 2)
			require.NoError(t, err)
			all[r] = b
		}
		errs, known, logged := startTwo(t, all, ccl.Options{Wire: "auth"}, true)
		require.Equal(t, [2]error{}, errs)
		require.True(t, known)
		require.NotContains(t, logged, openJob)
	}
}

// A job of one rank opens no port, so that it needs no secret.
func TestOneRankNeedsNoSecret(t *testing.T) {
	s := hallOf(t)
	t.Setenv("GOCCL_REQUIRE_SECRET", "1")
	b, err := boot.NewStore(s, "job", 0, 1)
	require.NoError(t, err)
	c, err := ccl.NewComm(t.Context(), b, &ccl.Options{Backend: "cpu"})
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// A job of one rank needs no secret until it grows by way of a store that anybody can read: then it is refused where one is required, as is
// its newcomer. Data of a job that has grown without one are not said to be protected.
func TestGrowNeedsSecret(t *testing.T) {
	grow := func(o ccl.Options) (grown, came error) {
		t.Setenv("GOCCL_REQUIRE_SECRET", "")
		j := newGrowing(t)
		defer j.all.Wait()
		o.Store, o.Log, o.Backend = public{j.hall}, slog.New(slog.DiscardHandler), "cpu"
		c, err := ccl.NewComm(j.ctx, bare{boot.Local(1)[0]}, &o)
		require.NoError(t, err)
		defer c.Close()
		ctx, cancel := context.WithCancel(j.ctx)
		defer cancel()
		j.all.Go(func() {
			next, err := ccl.Join(ctx, &o)
			if came = err; err == nil {
				next.Close()
			}
		})
		j.waits(1)
		t.Setenv("GOCCL_REQUIRE_SECRET", os.Getenv("REQUIRED"))
		next, err := ccl.Grow(j.ctx, c, 2)
		if err == nil && next != c {
			next.Close()
		}
		if err == nil && next == c {
			err = errors.New("nobody was taken in")
		}
		cancel()
		j.all.Wait()
		return err, came
	}
	t.Setenv("REQUIRED", "1")
	grown, _ := grow(ccl.Options{})
	require.ErrorIs(t, grown, ccl.ErrUnauthorized)
	require.ErrorContains(t, grown, "GOCCL_REQUIRE_SECRET=1, but the job has no secret")
	t.Setenv("GOCCL_SECRET", oneSecret)
	grown, came := grow(ccl.Options{Wire: "encrypt"})
	require.NoError(t, grown)
	require.NoError(t, came)
	t.Setenv("REQUIRED", "")
	t.Setenv("GOCCL_SECRET", "")
	grown, came = grow(ccl.Options{})
	require.NoError(t, grown)
	require.NoError(t, came)
}
