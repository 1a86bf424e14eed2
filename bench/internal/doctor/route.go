package doctor

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/inet"
)

// meeting is where a host's first rank can be reached while routes are tried.
type meeting struct {
	Rank  int      `json:"rank"`
	Host  string   `json:"host"`
	Addrs []string `json:"addrs"`
	Port  string   `json:"port"`
}

// route is one attempt to reach a host from another.
type route struct {
	From  string        `json:"from"`
	To    string        `json:"to"`
	Addr  string        `json:"addr"`
	Via   string        `json:"via"` // the address that it left from
	Took  time.Duration `json:"took_ns"`
	Error string        `json:"error,omitempty"`
}

const (
	// dialing is how long one attempt may take: a route that is cut says nothing.
	dialing = 2 * time.Second
	// neighbours is how many hosts each one tries in jobs of very many: the next ones, so
	// that each route is tried from both of its ends.
	neighbours = 64
)

// listen opens the port at which others try to reach this host. Whoever comes is let
// go at once.
func listen() (port string, done func(), err error) {
	l, err := inet.Listen(":0")
	if err != nil {
		return "", func() {}, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, func() { l.Close() }, nil
}

// try dials every address of the other hosts, from this one.
func try(ctx context.Context, self meeting, all []meeting) []route {
	var mu sync.Mutex
	var found []route
	var wait sync.WaitGroup
	limit := make(chan struct{}, 32)
	for _, m := range near(self, all) {
		for _, addr := range m.Addrs {
			wait.Go(func() {
				limit <- struct{}{}
				defer func() { <-limit }()
				r := route{From: self.Host, To: m.Host, Addr: addr}
				start := time.Now()
				c, err := inet.Dial(ctx, "tcp", net.JoinHostPort(addr, m.Port), dialing)
				r.Took = time.Since(start)
				if err != nil {
					r.Error = cause(err)
				} else {
					r.Via, _, _ = net.SplitHostPort(c.LocalAddr().String())
					c.Close()
				}
				mu.Lock()
				found = append(found, r)
				mu.Unlock()
			})
		}
	}
	wait.Wait()
	return found
}

// near are the hosts that self tries: all, or in large jobs those that follow and
// those before.
func near(self meeting, all []meeting) (others []meeting) {
	at := slices.IndexFunc(all, func(m meeting) bool { return m.Rank == self.Rank })
	if at < 0 {
		return nil
	}
	for i, m := range all {
		distance := (i - at + len(all)) % len(all)
		if i != at && (distance <= neighbours/2 || len(all)-distance <= neighbours/2) {
			others = append(others, m)
		}
	}
	return others
}

// cause is a network error without addresses, which are said already.
func cause(err error) string {
	for op := (*net.OpError)(nil); errors.As(err, &op); err = op.Err {
		if op.Timeout() {
			return "no answer"
		}
	}
	return err.Error()
}
