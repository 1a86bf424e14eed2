package blob_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob/s3blob"

	cloud "github.com/goccl/goccl/interop/blob"
	"github.com/goccl/goccl/interop/blob/uploads"
	"github.com/goccl/goccl/test/cache"
	tests "github.com/goccl/goccl/test/program"
	"github.com/goccl/goccl/train/ckpt/store"
)

const (
	access, secret = "tests", "of package blob"
	bucketName     = "models"
)

var (
	built    sync.Once
	program  string
	buildErr error
)

// TestMain removes the server's program.
func TestMain(m *testing.M) {
	code := m.Run()
	if program != "" {
		_ = os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

// serve starts an S3 server of its own for the test, and returns its address.
func serve(t *testing.T) string {
	cache.Whole()
	built.Do(func() {
		dir, err := os.MkdirTemp("", "gateway")
		if err != nil {
			buildErr = err
			return
		}
		program = filepath.Join(dir, "gateway")
		if out, err := exec.Command("go", "build", "-C", "gateway", "-o", program, ".").CombinedOutput(); err != nil {
			buildErr = fmt.Errorf("%w: %s", err, out)
		}
	})
	if buildErr != nil {
		if os.Getenv("GOCCL_REQUIRE") == "all" {
			t.Fatal(buildErr)
		}
		t.Skip("NOT RUN: the S3 server cannot be built: ", buildErr)
	}
	addr := "127.0.0.1:" + tests.FreePort(t)
	dir := filepath.Join(t.TempDir(), "served")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, bucketName), 0o777))
	cmd := exec.Command(program, addr, access, secret, dir)
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		_, err := client(addr).ListObjectsV2(context.Background(), &s3.ListObjectsV2Input{Bucket: aws.String(bucketName)})
		return err == nil
	}, time.Minute, 50*time.Millisecond, "the server does not answer")
	return addr
}

func client(addr string) *s3.Client {
	return s3.New(s3.Options{BaseEndpoint: aws.String("http://" + addr), UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(access, secret, ""), RetryMaxAttempts: 1})
}

// opened is a Store in the server at addr, with the smallest parts that S3 has, and whoever waits gives up soon.
func opened(t testing.TB, addr string) store.Store { return within(t, addr, 20*time.Second) }

// impatient is opened that waits for less.
func impatient(t testing.TB, addr string) store.Store { return within(t, addr, 5*time.Second) }

func within(t testing.TB, addr string, timeout time.Duration) store.Store {
	c := client(addr)
	b, err := s3blob.OpenBucket(context.Background(), c, bucketName, nil)
	require.NoError(t, err)
	return cloud.New(b, &cloud.Options{Part: 5 << 20, Timeout: timeout, Attempts: 2, Sweep: uploads.S3(c, bucketName)})
}

// proxy is before a server, and asks fault about each request: what it does to the n-th, counted from 1.
type proxy struct {
	mu    sync.Mutex
	n     int
	fault func(n int, r *http.Request) ill
	met   int // how many requests had a fault
}

// ill is how a request fares.
type ill int

const (
	well        ill = iota
	refused         // 503, and the server does not hear of it
	cut             // half of it comes to the server
	unanswered      // the server does it, and nobody hears of that
	hung            // nothing happens
	killsBefore     // the process that asks is killed, and then the server hears of it, or not
	killsAfter
)

func (p *proxy) set(fault func(n int, r *http.Request) ill) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n, p.met, p.fault = 0, 0, fault
}

func (p *proxy) count() (requests, faults int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n, p.met
}

// start serves p before the server at addr, and returns where.
func (p *proxy) start(t *testing.T, addr string, kill func()) string {
	to := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: addr})
		r.Out.Host = r.In.Host // which is signed
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.n++
		way := well
		if p.fault != nil {
			way = p.fault(p.n, r)
		}
		if way != well {
			p.met++
		}
		p.mu.Unlock()
		switch way {
		case well:
			to.ServeHTTP(w, r)
			return
		case refused:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case cut:
			r.Body = io.NopCloser(&half{r: r.Body, left: r.ContentLength / 2})
			to.ServeHTTP(discard{http.Header{}}, r)
		case unanswered:
			to.ServeHTTP(discard{http.Header{}}, r)
		case hung:
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
		case killsBefore:
			kill()
		case killsAfter:
			to.ServeHTTP(discard{http.Header{}}, r)
			kill()
		}
		panic(http.ErrAbortHandler) // closes the connection
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return l.Addr().String()
}

// half ends with an error after some bytes.
type half struct {
	r    io.Reader
	left int64
}

func (h *half) Read(b []byte) (int, error) {
	if h.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := h.r.Read(b[:min(int64(len(b)), h.left)])
	h.left -= int64(n)
	return n, err
}

// discard is an answer that goes nowhere.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}
