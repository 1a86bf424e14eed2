package plane

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/mail"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/lived"
)

// The mail of a job goes over streams that the control plane makes when the first message wants one: over
// TCP to other hosts, by the port that all of the process's streams have, and over an abstract socket to
// other processes of this one. A process takes them from when it joins, whether or not it uses messages: what it
// is sent on its way must not wait for that. A stream to one that joins yet is tried until it has.

// mailStream is the stream number, of no Comm, of what the lower of two ranks of the world sends; the next
// one that of the other.
const mailStream = 0xc1

// postal is how the ranks of a process reach others: it is the mail.Way of a Job.
type postal struct {
	Office *mail.Office
	job    *Job
	open   bool    // others can connect; under Job.mu
	doors  []*door // one for each host that this process shares with others; under Job.mu
}

// door is the socket by which the other processes of one host reach this one.
type door struct {
	socket    *net.UnixListener
	strangers *auth.Strangers
}

// Open has the Office reached by others, if it is not yet: it is as the job begins, unless that failed.
func (p *postal) Open() (*mail.Office, error) {
	j := p.job
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case p.open:
		return p.Office, nil
	case j.World.Leaves:
		return nil, errors.New("the job has ended here")
	}
	var doors []*door
	for s := range j.sites.sharing() {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + p.doorName(s.Here.Mine), Net: "unix"})
		if err != nil {
			for _, d := range doors { // another try opens them again
				d.socket.Close()
				d.strangers.Close()
			}
			return nil, fmt.Errorf("no socket for messages: %w", err)
		}
		doors = append(doors, &door{l, auth.NewStrangers(l.Addr())})
	}
	p.open, p.doors = true, doors
	for _, d := range doors {
		j.Life.Wg.Add(1)
		go p.accept(d)
	}
	if j.Net.TCP != nil {
		for i := range uint32(2) {
			j.Net.TCP.OnOffer(mailStream+i, p.offered)
		}
	}
	return p.Office, nil
}

// doorName is what only ranks of the job can tell: that of the socket of the process whose lowest rank, on
// the host that it shares, is first.
func (p *postal) doorName(first int) string {
	h := hmac.New(sha256.New, p.job.Net.Secret.Bytes())
	fmt.Fprintf(h, "mail %s %d", p.job.id, first)
	return "goccl-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// site is this process's part in the host of rank w of the world, nil if it has none.
func (p *postal) site(w int) *Site {
	for _, s := range p.job.Sites() {
		if s.Here.Node == p.job.World.Topo.Node(w) {
			return s
		}
	}
	return nil
}

// Here reports whether a rank lives in this process.
func (p *postal) Here(w int) bool {
	s := p.site(w)
	return s != nil && s.Here.Procs[p.job.World.Topo.Local(w)] == s.Here.Mine
}

// Reads reports whether a rank is on a host of this process.
func (p *postal) Reads(w int) bool { return p.site(w) != nil }

// Lived is the time that this process has lived through.
func (p *postal) Lived() time.Duration {
	if inject.Wrong("plane.lived") { // the clock, which goes on while the process is stopped
		return time.Duration(p.job.Clock())
	}
	return p.job.Time.Lived.Exact()
}

// Attend keeps the monitor awake: a pause counts as long as it meant to sleep, and a little more.
func (p *postal) Attend() { p.job.Time.Coarse.KeepAwake() }

// dialTime is how long one attempt to connect may take.
const dialTime = 10 * time.Second

// Dial makes the stream of what rank from of this process sends to rank to.
func (p *postal) Dial(ctx context.Context, from, to int) (*auth.Stream, error) {
	lived, over := WithinLived(p.job, dialTime)
	defer over()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(lived, cancel)()
	if s := p.site(to); s != nil && p.job.World.Topo.Node(from) == s.Here.Node {
		return p.knock(ctx, from, to, s.Here.Procs[p.job.World.Topo.Local(to)])
	}
	return p.job.Net.TCP.OpenControl(ctx, mailKey(from, to), uint32(from), p.job.Net.Addrs.At(to))
}

func mailKey(from, to int) tcp.Key {
	stream := uint32(mailStream)
	if from > to {
		stream++
	}
	return tcp.MakeKey(0, stream, uint32(from), uint32(to))
}

// knock connects with the process of this host whose lowest rank is first.
func (p *postal) knock(ctx context.Context, from, to, first int) (*auth.Stream, error) {
	c, err := inet.Dial(ctx, "unix", "@"+p.doorName(first), 0)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Now()) })
	var s *auth.Stream
	if err = auth.SameUser(c, p.job.Net.Secret); err == nil {
		s, _, err = auth.Client(c, p.job.id, p.job.Net.Secret,
			binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(from)), uint64(to)))
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return s, nil
}

// mailHandshake is how long a process of this host has to say which it is.
const mailHandshake = 5 * time.Second

// accept takes the streams of other processes of d's host.
func (p *postal) accept(d *door) {
	defer p.job.Life.Wg.Done()
	for {
		c, err := d.socket.AcceptUnix()
		switch {
		case err == nil && auth.SameUser(c, p.job.Net.Secret) != nil:
			c.Close()
		case err == nil:
			if n := d.strangers.Admit(c); n != nil {
				p.job.Life.Wg.Add(1)
				go p.welcome(c, n)
			}
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors, say
			time.Sleep(tick)
		}
	}
}

// welcome hands the stream of another process to the Office.
func (p *postal) welcome(c *net.UnixConn, stranger *auth.Stranger) {
	defer p.job.Life.Wg.Done()
	c.SetDeadline(time.Now().Add(mailHandshake))
	var from, to int
	s, _, err := auth.Server(c, p.job.id, p.job.Net.Secret, func(hello []byte) ([]byte, error) {
		if len(hello) != 16 {
			return nil, errors.New("a hello of another size")
		}
		a, b := binary.LittleEndian.Uint64(hello), binary.LittleEndian.Uint64(hello[8:])
		if n := uint64(p.job.World.Topo.Size()); a >= n || b >= n || !p.Here(int(b)) {
			return nil, fmt.Errorf("rank %d does not live here", b)
		}
		if !stranger.Leave() {
			return nil, net.ErrClosed
		}
		from, to = int(a), int(b)
		return nil, nil
	})
	if err != nil {
		c.Close()
		stranger.Judge(err)
		return
	}
	c.SetDeadline(time.Time{})
	p.Office.Accept(s, from, to)
}

// offered takes the stream that another host's rank has dialed to rank self of this process.
func (p *postal) offered(key tcp.Key, self uint32) {
	from := int(key.A ^ key.B ^ self)
	if from >= p.job.World.Topo.Size() || !p.Here(int(self)) || key != mailKey(from, int(self)) {
		return
	}
	ctx, cancel := lived.Within(p.job.Background(), mailHandshake)
	defer cancel()
	if s, err := p.job.Net.TCP.OpenControl(ctx, key, self, p.job.Net.Addrs.At(from)); err == nil {
		p.Office.Accept(s, from, int(self))
	}
}
