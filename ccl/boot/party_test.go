package boot

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A store is one job's: a process of another, which knows the same secret and is of the same user, gets nothing from it and leaves nothing
// there, and hears both names.
func TestStoreKnowsItsJob(t *testing.T) {
	for _, kind := range []string{"hall", "directory"} {
		for _, tc := range []struct{ of, comes, says, too string }{
			{"train 1", "train 2", `the job "train 1"`, `the job "train 2"`},
			{"train-1", "", `the job "train-1"`, "a job without a name"},
			{"", "train-1", "a job without a name", `the job "train-1"`},
			{"train", "train", "", ""},
		} {
			t.Run(kind+", "+tc.of+", "+tc.comes, func(t *testing.T) {
				t.Setenv("GOCCL_JOB", tc.of)
				place := t.TempDir()
				if kind == "hall" {
					place = hallFor(t, hallSecret).Addr()
				}
				open := func() Store {
					s, err := OpenStore(place, hallSecret)
					require.NoError(t, err)
					return s
				}
				mine := open()
				require.NoError(t, mine.Set(t.Context(), "k", []byte("v")))
				n, err := mine.Add(t.Context(), "n", 1)
				require.NoError(t, err)
				require.EqualValues(t, 1, n)

				t.Setenv("GOCCL_JOB", tc.comes)
				theirs := open()
				v, err := theirs.Get(t.Context(), "k")
				_, err2 := theirs.Add(t.Context(), "n", 1)
				if tc.says == "" {
					require.NoError(t, err)
					require.NoError(t, err2)
					require.Equal(t, "v", string(v))
					return
				}
				for _, err := range []error{err, err2} {
					require.ErrorIs(t, err, Argument)
					require.ErrorContains(t, err, "it belongs to "+tc.says+", and this process to "+tc.too+", as GOCCL_JOB says")
				}
				n, err = mine.Add(t.Context(), "n", 0)
				require.NoError(t, err)
				require.EqualValues(t, 1, n, "the other has changed it")
			})
		}
	}
	t.Setenv("GOCCL_JOB", strings.Repeat("x", mostName+1))
	for _, place := range []string{t.TempDir(), "127.0.0.1:1"} {
		_, err := OpenStore(place, nil)
		require.ErrorContains(t, err, "GOCCL_JOB has 1025 bytes; a hall takes at most 1024")
	}
}

// Spawn's hall is that of the job which the ranks' environment names.
func TestSpawnHallKnowsItsJob(t *testing.T) {
	c := Command{N: 1, Hall: "127.0.0.1:0", Env: []string{"GOCCL_JOB=a", "GOCCL_SECRET=" + sesame}}
	r, err := newRestarts(&c, usualTempo)
	require.NoError(t, err)
	defer r.hall.Close()
	t.Setenv("GOCCL_JOB", "b")
	s, err := DialHall(r.hall.Addr(), []byte(sesame))
	require.NoError(t, err)
	require.ErrorContains(t, s.Set(t.Context(), "k", nil), "it belongs to the job \"a\", and this process to the job \"b\"")
	t.Setenv("GOCCL_JOB", "a")
	s, err = DialHall(r.hall.Addr(), []byte(sesame))
	require.NoError(t, err)
	require.NoError(t, s.Set(t.Context(), "k", nil))
}

// What each way to a store does with the secret: the program's, the environment's, none, and none where one is required.
func TestStoreSettlesSecret(t *testing.T) {
	listen := func(secret []byte) (Store, error) {
		h, err := ListenHall("127.0.0.1:0", secret)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { h.Close() })
		return h, nil
	}
	ways := map[string]func(secret []byte) (Store, error){
		"ListenHall": listen,
		"DialHall":   func(secret []byte) (Store, error) { return DialHall("127.0.0.1:1", secret) },
		"FileStore":  func(secret []byte) (Store, error) { return FileStore(t.TempDir(), secret) },
		"EnvStore": func(secret []byte) (Store, error) {
			t.Setenv("GOCCL_HALL", "127.0.0.1:1")
			if secret != nil {
				t.Setenv("GOCCL_SECRET", string(secret))
			}
			return EnvStore()
		},
	}
	own := []byte("the program's own secret")
	for name, open := range ways {
		t.Run(name, func(t *testing.T) {
			of := func(s Store) string { return string(s.(interface{ Secret() []byte }).Secret()) }
			s, err := open(own)
			require.NoError(t, err)
			require.Equal(t, string(own), of(s))

			t.Setenv("GOCCL_SECRET", sesame)
			t.Setenv("GOCCL_REQUIRE_SECRET", "1")
			s, err = open(nil)
			require.NoError(t, err)
			require.Equal(t, sesame, of(s))

			t.Setenv("GOCCL_SECRET", "")
			s, err = open(nil)
			if name == "FileStore" { // which makes one
				require.NoError(t, err)
				require.Len(t, of(s), 32)
				return
			}
			require.ErrorIs(t, err, Unauthorized)
			require.ErrorContains(t, err, "GOCCL_REQUIRE_SECRET=1, but the job has no secret (GOCCL_SECRET is set, but empty, which is none)")
			t.Setenv("GOCCL_REQUIRE_SECRET", "")
			s, err = open(nil)
			require.NoError(t, err)
			require.Empty(t, of(s))
			_, err = open([]byte("short"))
			require.ErrorContains(t, err, "the job's secret is refused: ")
		})
	}
}

// A hall that other hosts reach warns where it has no secret.
func TestOpenHallWarns(t *testing.T) {
	for _, tc := range []struct {
		addr   string
		secret []byte
		warns  bool
	}{{"127.0.0.1:0", nil, false}, {"0.0.0.0:0", nil, true}, {"0.0.0.0:0", hallSecret, false}} {
		warned := warnings(t)
		h, err := ListenHall(tc.addr, tc.secret)
		require.NoError(t, err)
		require.NoError(t, h.Close())
		require.Equal(t, tc.warns, strings.Contains(warned.String(), "this job has no secret: anyone who can reach its ports can join it"), tc.addr)
	}
}

// Processes that open one directory at once, and are given no secret, have one and the same.
func TestFileStoreMakesOneSecret(t *testing.T) {
	dir := t.TempDir()
	stores := make([]*fileStore, 8)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			s, err := FileStore(dir, nil)
			if err == nil {
				stores[i] = s.(*fileStore)
			}
		})
	}
	wg.Wait()
	require.NoError(t, stores[0].Set(t.Context(), "k", []byte("v")))
	for _, s := range stores {
		v, err := s.Get(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, "v", string(v))
	}
	given, err := FileStore(dir, hallSecret)
	require.NoError(t, err)
	_, err = given.Get(t.Context(), "k")
	require.ErrorIs(t, err, Unauthorized)
}

// A way to start a job that is given no secret takes the environment's; without one it is refused where one is required, before a port is
// opened.
func TestStartSettlesSecret(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context) (*Boot, error){
		"TCP": func(ctx context.Context) (*Boot, error) { return TCP(ctx, "127.0.0.1:1", 1, 2, &TCPOptions{}) },
		"Env": func(ctx context.Context) (*Boot, error) {
			t.Setenv("GOCCL_RANK", "1")
			t.Setenv("GOCCL_SIZE", "2")
			t.Setenv("GOCCL_ROOT", "127.0.0.1:1")
			return Env(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOCCL_REQUIRE_SECRET", "1")
			_, err := start(within(t, long))
			wantError(t, err, Unauthorized, 1, -1)
			require.ErrorContains(t, err, "GOCCL_REQUIRE_SECRET=1, but the job has no secret: give all ranks the same GOCCL_SECRET_FILE")
			t.Setenv("GOCCL_SECRET", "short")
			_, err = start(within(t, long))
			wantError(t, err, Argument, 1, -1)
			require.ErrorContains(t, err, "GOCCL_SECRET: it holds 5 bytes")
		})
	}
	for _, size := range []int{1, 3} {
		t.Run("TCP by the environment's", func(t *testing.T) {
			t.Setenv("GOCCL_REQUIRE_SECRET", "1")
			if size > 1 {
				t.Setenv("GOCCL_SECRET", sesame)
			}
			root := freeRoot(t)
			boots := joined(t, size, func(r int) (*Boot, error) {
				return TCP(within(t, long), root, r, size, &TCPOptions{HostID: string(rune('a' + r))})
			})
			swap(t, boots)
			if size == 1 {
				return
			}
			for _, b := range boots {
				require.Equal(t, sesame, string(b.Secret()))
			}
		})
	}
	t.Run("File", func(t *testing.T) {
		t.Setenv("GOCCL_REQUIRE_SECRET", "1")
		for _, secret := range []string{"", sesame} {
			t.Setenv("GOCCL_SECRET", secret)
			dir := t.TempDir()
			boots := joined(t, 2, func(r int) (*Boot, error) { return File(within(t, long), dir, "job", r, 2) })
			swap(t, boots)
			if secret == "" {
				require.Len(t, boots[1].Secret(), 32)
			} else {
				require.Equal(t, sesame, string(boots[1].Secret()))
			}
		}
	})
}
