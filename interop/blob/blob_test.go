package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
	cloud "github.com/goccl/goccl/interop/blob"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/ckpt/store"
)

// stores are all that a test of Store is run on.
func stores(t *testing.T) map[string]func(t *testing.T) store.Store {
	return map[string]func(t *testing.T) store.Store{
		"memory": func(*testing.T) store.Store { return cloud.New(memblob.OpenBucket(nil), nil) },
		"files": func(t *testing.T) store.Store {
			b, err := fileblob.OpenBucket(t.TempDir(), nil)
			require.NoError(t, err)
			return cloud.New(b, nil)
		},
		"S3":  func(t *testing.T) store.Store { return opened(t, serve(t)) },
		"dir": func(t *testing.T) store.Store { return store.Dir(t.TempDir()) },
	}
}

func bytesOf(b []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(b); return err }
}

// What Store promises, of each.
func TestStore(t *testing.T) {
	for name, of := range stores(t) {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), of(t)
			read := func(name string) []byte {
				o, err := s.Open(ctx, name)
				require.NoError(t, err)
				b := make([]byte, o.Size())
				_, err = o.ReadAt(b, 0)
				require.NoError(t, err)
				if len(b) > 9 {
					some := make([]byte, 4)
					n, err := o.ReadAt(some, 5)
					require.NoError(t, err)
					require.Equal(t, b[5:9], some[:n])
					n, err = o.ReadAt(some, o.Size()-3)
					require.ErrorIs(t, err, io.EOF)
					require.Equal(t, b[len(b)-3:], some[:n])
				}
				require.NoError(t, o.Close())
				return b
			}
			_, err := s.Open(ctx, "a/b")
			require.ErrorIs(t, err, fs.ErrNotExist)
			es, err := s.List(ctx, "")
			require.NoError(t, err)
			require.Empty(t, es)
			large := bytes.Repeat([]byte("0123456789abcdef"), 11<<16) // 11 MiB: three parts
			require.NoError(t, s.Put(ctx, "a/b", 3, false, bytesOf([]byte("one"))))
			require.ErrorIs(t, s.Put(ctx, "a/b", 3, true, bytesOf([]byte("two"))), fs.ErrExist)
			require.Equal(t, "one", string(read("a/b")))
			require.NoError(t, s.Put(ctx, "a/b", int64(len(large)), false, bytesOf(large)))
			require.True(t, bytes.Equal(large, read("a/b")))
			require.NoError(t, s.Put(ctx, "a/b", 0, false, bytesOf(nil)))
			require.Empty(t, read("a/b"))
			require.NoError(t, s.Put(ctx, "a/c-1.x", 4, true, bytesOf([]byte("four"))))
			require.NoError(t, s.Put(ctx, "ab", 1, true, bytesOf([]byte("1"))))
			for prefix, want := range map[string][]store.Entry{"": {{Name: "a/b", Size: 0}, {Name: "a/c-1.x", Size: 4}, {Name: "ab", Size: 1}},
				"a/": {{Name: "a/b", Size: 0}, {Name: "a/c-1.x", Size: 4}}, "a/c-": {{Name: "a/c-1.x", Size: 4}}, "x/": nil} {
				es, err := s.List(ctx, prefix)
				require.NoError(t, err)
				require.Equal(t, want, es, prefix)
			}
			bad := errors.New("a test's")
			for n, write := range map[int64]func(io.Writer) error{1: bytesOf([]byte("xy")), 3: bytesOf([]byte("xy")),
				12 << 20: func(w io.Writer) error { _, err := w.Write(large); return errors.Join(err, bad) }} {
				require.Error(t, s.Put(ctx, "a/d", n, false, write), "%d bytes", n)
				_, err = s.Open(ctx, "a/d")
				require.ErrorIs(t, err, fs.ErrNotExist, "%d bytes", n)
			}
			require.ErrorIs(t, s.Put(ctx, "a/d", 1, false, func(io.Writer) error { return bad }), bad)
			over, cancel := context.WithCancel(ctx)
			cancel()
			require.ErrorIs(t, s.Put(over, "a/d", 1, false, bytesOf([]byte("1"))), context.Canceled)
			for _, name := range []string{"", ".", "/a", "a/../b", "../b", "a//b"} {
				require.ErrorIs(t, s.Put(ctx, name, 0, false, bytesOf(nil)), fs.ErrInvalid, name)
				_, err := s.Open(ctx, name)
				require.ErrorIs(t, err, fs.ErrInvalid, name)
				require.ErrorIs(t, s.Delete(ctx, name), fs.ErrInvalid, name)
			}
			require.NoError(t, s.Delete(ctx, "a/b"))
			require.NoError(t, s.Delete(ctx, "a/b"))
			_, err = s.Open(ctx, "a/b")
			require.ErrorIs(t, err, fs.ErrNotExist)

			if name == "files" { // whose lock is each writer's own: two may find that there is no file
				return
			}
			for round := range 10 { // of several one wins, and it is there
				var wins []string
				var mu sync.Mutex
				var all sync.WaitGroup
				name := fmt.Sprint("fresh/", round)
				for k := range 4 {
					all.Go(func() {
						me := fmt.Sprint("writer ", k)
						err := s.Put(ctx, name, int64(len(me)), true, bytesOf([]byte(me)))
						if err == nil {
							mu.Lock()
							wins = append(wins, me)
							mu.Unlock()
						} else if !errors.Is(err, fs.ErrExist) {
							t.Error(err)
						}
					})
				}
				all.Wait()
				require.Len(t, wins, 1)
				require.Equal(t, wins[0], string(read(name)))
			}
		})
	}
}

// What a server says that has no such bucket, or fails with a text that s3blob takes for that of a missing bucket, is not
// fs.ErrNotExist: a job that resumes or begins would begin, and a checkpoint whose part it is would count as damaged.
// And a server that lists the same again and again comes to an end.
func TestServerLies(t *testing.T) {
	answer := map[string]func(w http.ResponseWriter, r *http.Request){
		"NoSuchBucket": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>")
		},
		"30130130": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Request-Id", "30130130")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
	}
	for want, f := range answer {
		server := httptest.NewServer(http.HandlerFunc(f))
		t.Cleanup(server.Close)
		s, ctx := opened(t, server.Listener.Addr().String()), t.Context()
		_, err := s.Open(ctx, "x")
		require.Error(t, err)
		require.NotErrorIs(t, err, fs.ErrNotExist)
		_, err = s.List(ctx, "x")
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, fs.ErrNotExist)
		err = s.Put(ctx, "x", 1, true, bytesOf([]byte("x")))
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, fs.ErrNotExist)
		require.NotErrorIs(t, err, fs.ErrExist)
		require.Error(t, s.Delete(ctx, "x"))
	}
	const rest = "<LastModified>2026-01-01T00:00:00Z</LastModified><ETag>x</ETag></Contents>"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("uploads") {
			_, _ = io.WriteString(w, "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>x</NextKeyMarker>"+
				"<Upload><Key>x</Key><UploadId>1</UploadId></Upload></ListMultipartUploadsResult>")
			return
		}
		if r.URL.Query().Get("prefix") == "undated" {
			_, _ = io.WriteString(w, "<ListBucketResult><Contents><Key>undated</Key><Size>1</Size></Contents></ListBucketResult>")
			return
		}
		_, _ = io.WriteString(w, "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>"+
			"<Contents><Key>x1</Key><Size>1</Size>"+rest+"<Contents><Key>x0</Key><Size>1</Size>"+rest+"</ListBucketResult>")
	}))
	t.Cleanup(server.Close)
	s := opened(t, server.Listener.Addr().String())
	_, err := s.List(t.Context(), "x")
	require.ErrorContains(t, err, `lists "x1" again`)
	_, err = s.List(t.Context(), "y")
	require.ErrorContains(t, err, `where it is not`)
	_, err = s.List(t.Context(), "undated")
	require.ErrorContains(t, err, "what the object store lists cannot be read")
	err = s.(store.Sweeper).Sweep(t.Context(), "x", func(string) bool { return false })
	require.ErrorContains(t, err, "does not go on")
}

// tensors are what a rank has of one of 12 MiB and of a small one, at a step.
func tensors(rank, size int, step float32) []ckpt.Tensor {
	n := 3 << 20 / size
	return []ckpt.Tensor{{Name: "large", Shape: []int{n * size}, Lo: rank * n, Hi: (rank + 1) * n, Data: slices.Repeat([]float32{step}, n)},
		{Name: "small", Shape: []int{3}, Data: []float32{step, step, step}}}
}

// loads is the step of a checkpoint, all of whose values it is.
func loads(t testing.TB, c *ccl.Comm, h ckpt.Shelf, name string) int {
	step, ts := 0, tensors(c.Rank(), c.Size(), 0)
	_, err := h.Load(t.Context(), c, name, &step, ts, ckpt.LoadOptions{})
	require.NoError(t, err)
	require.Equal(t, tensors(c.Rank(), c.Size(), float32(step)), ts)
	return step
}

// unended are the uploads in the server that were not completed.
func unended(t testing.TB, addr string) (keys []string) {
	out, err := client(addr).ListMultipartUploads(context.Background(), &s3.ListMultipartUploadsInput{Bucket: aws.String(bucketName)})
	require.NoError(t, err)
	for _, u := range out.Uploads {
		keys = append(keys, aws.ToString(u.Key))
	}
	return keys
}

// parts are the parts of checkpoints in the server.
func parts(t testing.TB, addr string) (names []string) {
	es, err := opened(t, addr).List(context.Background(), "")
	require.NoError(t, err)
	for _, e := range es {
		if strings.Contains(e.Name, "/part-") {
			names = append(names, e.Name)
		}
	}
	return names
}

func TestShelf(t *testing.T) {
	addr := serve(t)
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx, h := t.Context(), ckpt.Shelf{Store: opened(t, addr)}
		_, _, err := h.Latest(ctx, c, "run")
		require.ErrorIs(t, err, fs.ErrNotExist)
		for step := 1; step <= 3; step++ {
			require.NoError(t, h.Save(ctx, c, ckpt.Step("run", step), step, tensors(c.Rank(), 2, float32(step))))
		}
		require.ErrorIs(t, h.Save(ctx, c, ckpt.Step("run", 3), 3, tensors(c.Rank(), 2, 3)), fs.ErrExist)
		latest, passed, err := h.Latest(ctx, c, "run")
		require.NoError(t, err)
		require.Empty(t, passed)
		require.Equal(t, "run/step-00000003", latest)
		require.Equal(t, 3, loads(t, c, h, latest))
		require.NoError(t, h.Forget(ctx, c, "run", 2))
		require.NoError(t, h.Keep(ctx, c, "run", 1))
		one, err := c.Split(ctx, c.Rank(), 0) // another layout
		require.NoError(t, err)
		require.Equal(t, 2, loads(t, one, h, "run/step-00000002"))
		require.NoError(t, one.Close())
		require.NoError(t, ccl.Barrier(ctx, c))
		require.Len(t, parts(t, addr), 2)
	}, ccltest.Deadline(5*time.Minute))
}

// Whatever fares how of what a Save sends, Latest is the old checkpoint or the new one, whole; and the new one if Save had
// no error. It ends in time, what comes again succeeds, and what has failed leaves nothing.
func TestServerFails(t *testing.T) {
	addr := serve(t)
	for name, tc := range map[string]struct {
		way   ill
		times int  // of requests that fare so, one after the other
		saved bool // in spite of it
		every int  // of the requests of a Save
	}{
		"refused once":       {refused, 1, true, 1},
		"refused for long":   {refused, 1000, false, 1},
		"cut once":           {cut, 1, true, 1},
		"cut for long":       {cut, 1000, false, 2},
		"unanswered once":    {unanswered, 1, true, 1},
		"unanswered for 4":   {unanswered, 4, false, 2},
		"hung once, for all": {hung, 1, true, 5},
	} {
		t.Run(name, func(t *testing.T) {
			p := &proxy{}
			before := p.start(t, addr, nil)
			run := strings.ReplaceAll(name, " ", "-")
			ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
				ctx, direct := t.Context(), ckpt.Shelf{Store: opened(t, addr)}
				b := opened(t, before)
				if tc.way == hung {
					b = impatient(t, before)
				}
				h := ckpt.Shelf{Store: b}
				require.NoError(t, direct.Save(ctx, c, ckpt.Step(run, 1), 1, tensors(0, 1, 1)))
				step := 2
				for at := 1; ; at += tc.every {
					p.set(func(n int, _ *http.Request) ill {
						if n >= at && n < at+tc.times {
							return tc.way
						}
						return well
					})
					began := time.Now()
					err := h.Save(ctx, c, ckpt.Step(run, step), step, tensors(0, 1, float32(step)))
					took := time.Since(began)
					_, met := p.count()
					p.set(nil)
					if took > 3*time.Minute {
						t.Errorf("request %d: %v", at, took)
					}
					latest, passed, err2 := direct.Latest(ctx, c, run)
					require.NoError(t, err2)
					require.Empty(t, passed)
					got := loads(t, c, direct, latest)
					require.Contains(t, []int{step - 1, step}, got)
					if err == nil {
						require.Equal(t, step, got, "request %d", at)
					} else {
						require.False(t, tc.saved && met > 0, "request %d: %v", at, err)
					}
					if got < step {
						require.NoError(t, h.Save(ctx, c, ckpt.Step(run, step), step, tensors(0, 1, float32(step))), "request %d", at)
					}
					if met == 0 {
						require.Greater(t, at, 4)
						break
					}
					step++
				}
				require.NoError(t, direct.Keep(ctx, c, run, 1))
				require.Equal(t, step, loads(t, c, direct, ckpt.Step(run, step)))
				left := slices.DeleteFunc(parts(t, addr), func(n string) bool { return !strings.HasPrefix(n, run+"/") })
				require.Len(t, left, 1)
				require.Empty(t, slices.DeleteFunc(unended(t, addr), func(n string) bool { return !strings.HasPrefix(n, run+"/") }))
			}, ccltest.Deadline(10*time.Minute))
		})
	}
}

// Killed when the server gets its n-th request, before or after the server has it, a process has left the old checkpoint or
// the new one; what else it has left goes. GOCCL_TEST_KILLS says how often: make store-kills has 200.
func TestKilled(t *testing.T) {
	kills, err := strconv.Atoi(os.Getenv("GOCCL_TEST_KILLS"))
	if err != nil {
		kills = 6
	}
	addr := serve(t)
	p := &proxy{}
	var mu sync.Mutex
	var child *exec.Cmd
	before := p.start(t, addr, func() {
		mu.Lock()
		defer mu.Unlock()
		_ = child.Process.Kill()
	})
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		ctx, h := t.Context(), ckpt.Shelf{Store: opened(t, addr)}
		require.NoError(t, h.Save(ctx, c, ckpt.Step("", 1), 1, tensors(0, 1, 1)))
		killed, whole := 0, 1
		for at := 1; killed < kills; at++ {
			way := []ill{killsBefore, killsAfter}[at&1]
			p.set(func(n int, _ *http.Request) ill {
				if n == (at+1)/2 {
					return way
				}
				return well
			})
			cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledChild$")
			cmd.Env = append(os.Environ(), fmt.Sprintf("GOCCL_TEST_BLOB_CHILD=%s %d", before, whole+1))
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			mu.Lock()
			require.NoError(t, cmd.Start())
			child = cmd
			mu.Unlock()
			err := cmd.Wait()
			p.set(nil)
			require.NotContains(t, out.String(), "FAIL", "it is to be killed")
			latest, passed, err2 := h.Latest(ctx, c, "")
			require.NoError(t, err2)
			require.Empty(t, passed)
			got := loads(t, c, h, latest)
			require.Contains(t, []int{whole, whole + 1}, got)
			if err == nil { // it has ended before there was such a request
				require.Equal(t, whole+1, got)
				at = 0
			} else {
				killed++
			}
			whole = got
			if killed%8 == 0 {
				require.NoError(t, h.Keep(ctx, c, "", 2))
			}
		}
		for step := whole + 1; step <= whole+2; step++ {
			require.NoError(t, h.Save(ctx, c, ckpt.Step("", step), step, tensors(0, 1, float32(step))))
		}
		require.NoError(t, h.Keep(ctx, c, "", 1))
		require.Len(t, parts(t, addr), 1)
		require.Empty(t, unended(t, addr))
		t.Logf("%d times killed", killed)
	}, ccltest.Deadline(time.Duration(2+kills/4)*time.Minute))
}

// TestKilledChild is the process that TestKilled kills.
func TestKilledChild(t *testing.T) {
	arg := os.Getenv("GOCCL_TEST_BLOB_CHILD")
	if arg == "" {
		return // which is all that it does by itself
	}
	var addr string
	var step int
	_, err := fmt.Sscan(arg, &addr, &step)
	require.NoError(t, err)
	c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], nil)
	require.NoError(t, err)
	require.NoError(t, ckpt.Shelf{Store: opened(t, addr)}.Save(t.Context(), c, ckpt.Step("", step), step, tensors(0, 1, float32(step))))
}
