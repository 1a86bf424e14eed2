// Command service is an HTTP server over a Comm: all ranks answer each request together. It counts the
// numbers from 1 to 100,000 that a number divides; each rank looks at its share. docs/service.md
// explains it.
//
//	go build -o /tmp/service ./examples/service
//	go run ./bench launch -np 4 -- /tmp/service -addr 127.0.0.1:8080
//	curl 'http://127.0.0.1:8080/count?of=7'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/goccl/goccl/ccl"
)

const (
	most  = 100_000          // the numbers are 1 to most
	idle  = 10 * time.Second // so often the ranks meet without a request: each call of theirs ends in Options.Timeout
	grace = time.Second / 2  // how long a server that ends waits for its last requests
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where rank 0 listens")
	flag.Parse()
	// All ranks get the signal, but rank 0 alone ends the job: it tells the others in a call.
	stop, done := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer done()
	if err := run(stop, *addr); err != nil {
		log.Fatal(err)
	}
}

func run(stop context.Context, addr string) (err error) {
	ctx := context.Background() // of all calls: what ends it ends the Comm for all
	c, err := ccl.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer c.Finish(&err)
	if c.Rank() > 0 {
		return work(ctx, c)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("listening at http://%s with %d ranks\n", l.Addr(), c.Size())
	return serve(ctx, stop, c, l)
}

// What rank 0 tells the others to do, in the first element of an order; the second is its number.
const (
	count = iota
	nothing
	end
)

// work is what ranks other than 0 do: each order in turn.
func work(ctx context.Context, c *ccl.Comm) error {
	for {
		order := make([]int64, 2)
		if err := ccl.Broadcast(ctx, c, order, 0); err != nil {
			return err
		}
		switch order[0] {
		case count:
			if err := answer(ctx, c, order[1:]); err != nil {
				return err
			}
		case end:
			return nil
		}
	}
}

// answer replaces the number in x by how many numbers it divides, on rank 0. Every rank counts its share.
func answer(ctx context.Context, c *ccl.Comm, x []int64) error {
	n := int64(0)
	for i := c.Rank() + 1; i <= most; i += c.Size() {
		if int64(i)%x[0] == 0 {
			n++
		}
	}
	x[0] = n
	return ccl.Reduce(ctx, c, x, x, ccl.Sum, 0)
}

// request is what a handler asks the owner of the Comm.
type request struct {
	ctx    context.Context // the client's: no call of the Comm gets it
	number int64
	count  chan int64 // with room for one, so that the owner does not wait for a client that has gone away
}

// service is rank 0. Its handlers have no Comm: they ask the owner.
type service struct {
	requests chan request
	stop     chan struct{} // closed when the owner is to end
	over     chan struct{} // closed when it has; err is why
	err      error
}

// own makes all calls of rank 0, one request at a time. No other goroutine uses c.
func (s *service) own(ctx context.Context, c *ccl.Comm) error {
	for {
		order, r := []int64{nothing, 0}, request{}
		select {
		case r = <-s.requests:
			if r.ctx.Err() != nil { // gone before its turn: no rank has heard of it
				continue
			}
			order = []int64{count, r.number}
		case <-time.After(idle):
		case <-s.stop:
			order[0] = end
		case <-c.Done(): // a rank was lost while there was nothing to do
			return c.Err()
		}
		if err := ccl.Broadcast(ctx, c, order, 0); err != nil {
			return err
		}
		switch order[0] {
		case count:
			// From here the call belongs to all ranks. A client that goes away now does not end it.
			if err := answer(ctx, c, order[1:]); err != nil {
				return err
			}
			r.count <- order[1]
		case end:
			return nil
		}
	}
}

// serve answers requests until stop ends, or the Comm fails.
func serve(ctx, stop context.Context, c *ccl.Comm, l net.Listener) error {
	s := &service{requests: make(chan request), stop: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(s.over)
		s.err = s.own(ctx, c)
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /count", s.handle)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()

	var err error
	select {
	case <-stop.Done():
	case <-s.over:
	case err = <-served:
	}
	// First the handlers end, which need the owner; then the owner, and with it the other ranks.
	last, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if server.Shutdown(last) != nil { // a client is too slow to take its answer
		err = errors.Join(err, server.Close())
	}
	close(s.stop)
	<-s.over
	return errors.Join(s.err, err)
}

// handle answers one client.
func (s *service) handle(w http.ResponseWriter, r *http.Request) {
	x, err := strconv.ParseInt(r.FormValue("of"), 10, 64)
	if err != nil || x < 1 || x > most {
		http.Error(w, fmt.Sprintf("of is a number from 1 to %d", most), http.StatusBadRequest)
		return
	}
	q := request{r.Context(), x, make(chan int64, 1)}
	requests := s.requests
	for {
		select {
		case requests <- q:
			requests = nil // asked once; now for the answer
		case n := <-q.count:
			fmt.Fprintln(w, n)
			return
		case <-r.Context().Done(): // gone; nobody reads an answer
			return
		case <-s.over:
			http.Error(w, "the job has failed", http.StatusServiceUnavailable)
			return
		}
	}
}
