// Package onpath is somebody on the path between two processes of a job, who knows no secret: it
// passes their handshakes on, and then keeps or changes what they send. It is for tests.
package onpath

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"

	"github.com/goccl/goccl/internal/inet"
)

// Piece is what has come from one end of a connection.
type Piece struct {
	Hello []byte // what the end that dialed has said in the handshake
	Up    bool   // it comes from that end
	Bytes []byte
}

// Path listens in the place of another address, and passes what comes on to that.
type Path struct {
	l      net.Listener
	to     string
	change func(Piece) []byte
	wg     sync.WaitGroup
	mu     sync.Mutex
	conns  []net.Conn
}

// To begins to listen in the place of the address to. Of each piece that goes by after a handshake, change says what is
// passed on; it is called by several goroutines.
func To(to string, change func(Piece) []byte) (*Path, error) {
	l, err := inet.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Path{l: l, to: to, change: change}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.pass(c) })
		}
	})
	return p, nil
}

// Addr is where the Path listens.
func (p *Path) Addr() netip.AddrPort { return p.l.Addr().(*net.TCPAddr).AddrPort() }

// Close ends the Path and its connections.
func (p *Path) Close() {
	p.l.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
	p.to = ""
	p.mu.Unlock()
	p.wg.Wait()
}

// pass serves one connection.
func (p *Path) pass(dialed net.Conn) {
	defer dialed.Close()
	p.mu.Lock()
	to := p.to
	p.conns = append(p.conns, dialed)
	p.mu.Unlock()
	served, err := inet.Dial(context.Background(), "tcp", to, 0)
	if err != nil {
		return
	}
	defer served.Close()
	p.mu.Lock()
	p.conns = append(p.conns, served)
	p.mu.Unlock()
	hello, ok := handshake(dialed, served)
	if !ok {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(served, dialed, Piece{Hello: hello, Up: true}) })
	both.Go(func() { p.pump(dialed, served, Piece{Hello: hello}) })
	both.Wait()
}

// handshake passes a handshake on, as package auth describes it, and returns the hello. It is false for one that fails.
func handshake(client, server net.Conn) (hello []byte, ok bool) {
	ok = true
	move := func(to, from net.Conn, n int) []byte {
		b := make([]byte, n)
		if ok {
			_, err := io.ReadFull(from, b)
			_, werr := to.Write(b)
			ok = err == nil && werr == nil
		}
		return b
	}
	length := func(head []byte) int { return int(binary.BigEndian.Uint16(head[1:])) }
	move(server, client, 60)                    // greeting
	move(client, server, 44)                    // answer
	proof := move(server, client, 67)           // proof
	move(client, server, 33)                    // opening
	hello = move(server, client, length(proof)) // hello
	reply := move(client, server, 35)           // reply
	move(client, server, length(reply))
	return hello, ok
}

// pump passes on what comes from one end until it ends.
func (p *Path) pump(to, from net.Conn, piece Piece) {
	for b := make([]byte, 128<<10); ; {
		n, err := from.Read(b)
		if n > 0 {
			piece.Bytes = b[:n]
			if _, err := to.Write(p.change(piece)); err != nil {
				return
			}
		}
		if err != nil {
			to.(*net.TCPConn).CloseWrite()
			return
		}
	}
}
