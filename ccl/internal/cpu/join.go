package cpu

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/algo"
)

// Bootstrap is what a launcher supplies. It is ccl.Bootstrap; the other methods of
// boot.Boot (Secret, Addr, HostID, Watch) are used where there.
type Bootstrap interface {
	Rank() int
	Size() int
	AllGather(ctx context.Context, mine []byte) ([][]byte, error)
}

// process tells the processes of a job apart.
var process = func() (t [16]byte) {
	rand.Read(t[:])
	return t
}()

// hello is what ranks tell each other first:
//
//	8 bytes magic | 8 hash of version and options | 16 seed of the job's id |
//	16 host | 16 process | the version and options, to name the one that differs
const (
	helloMagic = "goccl\x00\x00\x01"
	helloHead  = 8 + 8 + 16 + 16 + 16
)

type hello []byte

func (h hello) valid() bool      { return len(h) >= helloHead && string(h[:8]) == helloMagic }
func (h hello) options() []byte  { return h[8:16] }
func (h hello) seed() []byte     { return h[16:32] }
func (h hello) host() [16]byte   { return [16]byte(h[32:48]) }
func (h hello) process() []byte  { return h[48:64] }
func (h hello) settings() string { return string(h[helloHead:]) }

func newHello(settings, hostID string) hello {
	h := make(hello, 0, helloHead+len(settings))
	h = append(h, helloMagic...)
	sum := sha256.Sum256([]byte(settings))
	h = append(h, sum[:8]...)
	var seed [16]byte
	rand.Read(seed[:])
	h = append(h, seed[:]...)
	if hostID == "" {
		hostID = hostIdentity()
	} else {
		hostID = "named " + hostID
	}
	key := sha256.Sum256([]byte(hostID))
	if !canShare {
		key = sha256.Sum256(process[:])
		if strings.HasPrefix(hostID, "named ") {
			key = sha256.Sum256(append(process[:], hostID...))
		}
	}
	h = append(h, key[:16]...)
	h = append(h, process[:]...)
	return append(h, settings...)
}

// Join makes the Comm of all ranks of a job. settings are the version and the
// options that must agree, as name=value pairs separated by semicolons.
func Join(ctx context.Context, b Bootstrap, settings string, opt Options) (*Comm, *Fault) {
	rank, size := b.Rank(), b.Size()
	if size < 1 || rank < 0 || rank >= size {
		return nil, fault(Argument, -1, "the bootstrap says rank %d of %d", rank, size)
	}
	id := ""
	if s, ok := b.(interface{ HostID() string }); ok {
		id = s.HostID()
	}
	all, err := b.AllGather(ctx, newHello(settings, id))
	if err != nil {
		return nil, bootFault(err)
	}
	if f := compare(all, size); f != nil {
		return nil, f
	}
	j := enterJob(hex.EncodeToString(hello(all[0]).seed()))
	c, f := j.join(ctx, b, all, opt)
	if f != nil {
		j.leave()
		return nil, f
	}
	return c, nil
}

// compare finds the rank whose version or options are not those of rank 0.
func compare(all [][]byte, size int) *Fault {
	if len(all) != size {
		return fault(Backend, -1, "the bootstrap gathered %d values from %d ranks", len(all), size)
	}
	for r, h := range all {
		if !hello(h).valid() {
			return fault(Version, r, "rank %d runs something else than this goccl, or another version of it", r)
		}
		if !bytes.Equal(hello(h).options(), hello(all[0]).options()) {
			return fault(Version, r, "rank %d differs from rank 0: %s", r, firstDifference(hello(all[0]).settings(), hello(h).settings()))
		}
	}
	return nil
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, ";"), strings.Split(b, ";")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("%s there, %s on rank 0", y[i], x[i])
		}
	}
	return "another number of options"
}

// join runs the steps after the first exchange. Each is done once per process.
func (j *job) join(ctx context.Context, b Bootstrap, all [][]byte, opt Options) (*Comm, *Fault) {
	rank := b.Rank()
	verdict := func(err error, more []byte) ([][]byte, *Fault) {
		inject.At("join.verdict")
		msg := append([]byte{0}, more...)
		if err != nil {
			msg = append([]byte{1}, err.Error()...)
			if errors.Is(err, errCannotShare) {
				msg[0] = 2
			}
		}
		said, err2 := b.AllGather(ctx, msg)
		if err2 != nil {
			return nil, bootFault(err2)
		}
		for r, m := range said {
			if len(m) == 0 || m[0] == 1 {
				return nil, fault(Backend, r, "rank %d: %s", r, m[min(1, len(m)):])
			}
		}
		return said, nil
	}
	// All of a process must know the hosts before any of its ranks goes on.
	var said [][]byte
	var at *site
	apart := make([]bool, len(all)) // ranks that could not share memory in an earlier try
	for try := 0; ; try++ {
		nodeOf := hostsOf(all, apart)
		err := j.begin(b, nodeOf, try, opt)
		if err == nil {
			at = j.site(j.topo.Node(rank))
			err = at.steps[try].do(func() error {
				together, stop := whileAll(ctx, b)
				defer stop()
				return at.openHost(together, all, rank)
			})
		}
		var addr []byte
		if err == nil && j.tcp != nil {
			addr, _ = j.tcp.Addr().MarshalBinary()
		}
		var f *Fault
		if said, f = verdict(err, addr); f != nil {
			return nil, f
		}
		again := false
		for r, m := range said {
			if m[0] == 2 {
				apart[r], again = true, true
			}
		}
		if !again {
			break
		}
		if try == 2 {
			return nil, fault(Backend, -1, "the ranks of a host could not agree on shared memory")
		}
	}
	err := j.last.do(func() error { return j.learn(said) })
	if err == nil {
		err = at.steps[4].do(func() error {
			together, stop := whileAll(ctx, b)
			defer stop()
			if err := at.joinPlane(together); err != nil {
				return err
			}
			return roomForCalls(at.topo.Locals(at.node))
		})
	}
	if _, f := verdict(err, nil); f != nil {
		return nil, f
	}
	c, err := newComm(at, worldID, members{stride: 1}, j.topo, rank, at.host.head.world.Load(), opt)
	if err != nil {
		return nil, fault(Backend, rank, "%w", err)
	}
	if d, ok := b.(Disturbed); ok {
		c.disturb = d.BeforeCall
	}
	return c, nil
}

// whileAll is ctx for what takes all ranks: it also ends when one of them is lost, which the next AllGather then says.
func whileAll(ctx context.Context, b Bootstrap) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if w, ok := b.(interface{ Watch() <-chan struct{} }); ok {
		lost := w.Watch()
		go func() {
			defer cancel()
			select {
			case <-lost:
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

const worldID = 1

// errCannotShare says that this process cannot map memory with the others of what
// seemed to be its host: it counts as a host of its own then.
var errCannotShare = errors.New("no shared memory with the other ranks of this host")

// hostsOf numbers the hosts, in the order of their lowest ranks, and says which each
// rank is on. The process of a rank that is apart counts as a host of its own.
func hostsOf(all [][]byte, apart []bool) []int {
	number := make(map[[16]byte]int)
	nodeOf := make([]int, len(all))
	for r := range all {
		key := hello(all[r]).host()
		if apart != nil && apart[r] {
			key = [16]byte(hello(all[r]).process())
		}
		h, ok := number[key]
		if !ok {
			h = len(number)
			number[key] = h
		}
		nodeOf[r] = h
	}
	return nodeOf
}

// begin sets up what the ranks of this process share, once per try.
func (j *job) begin(b Bootstrap, nodeOf []int, try int, opt Options) error {
	return j.tries[try].do(func() error {
		nodes := 0
		for _, h := range nodeOf {
			nodes = max(nodes, h+1)
		}
		j.peer = opt.PeerTimeout
		j.topo = topology(nodeOf, nodes)
		for _, s := range j.parts() { // from an earlier try
			s.giveUp()
		}
		j.mu.Lock()
		clear(j.leavers) // of the memory that was given up
		clear(j.first)
		clear(j.vacant)
		j.mu.Unlock()
		if try == 0 {
			j.wg.Add(1)
			go j.monitor()
		}
		if nodes > 1 && j.tcp == nil {
			return j.openTCP(b)
		}
		return nil
	})
}

func topology(nodeOf []int, nodes int) algo.Topology {
	n := len(nodeOf)
	if nodes == 1 {
		return algo.Flat(n)
	}
	if n%nodes == 0 {
		regular := true
		for r, h := range nodeOf {
			regular = regular && h == r/(n/nodes)
		}
		if regular {
			return algo.Blocks(nodes, n/nodes)
		}
	}
	return algo.Placed(nodeOf)
}

// openTCP begins to listen at the interface that reaches the other hosts.
func (j *job) openTCP(b Bootstrap) error {
	var secret []byte
	var toward netip.Addr
	if s, ok := b.(interface{ Secret() []byte }); ok {
		secret = s.Secret()
	}
	if s, ok := b.(interface{ Addr() netip.Addr }); ok {
		toward = s.Addr()
	}
	addr, name, err := tcp.Pick(os.Getenv("GOCCL_SOCKET_IFNAME"), toward)
	if err != nil {
		return err
	}
	j.iface = name
	j.tcp, err = tcp.Listen(j.id, secret, addr)
	return err
}

// openHost joins the memory of this host: the process of its lowest rank makes it and hands it out.
func (s *site) openHost(ctx context.Context, all [][]byte, rank int) error {
	inject.At("join.host")
	// The processes of this host, each by its lowest rank.
	first := map[string]int{}
	n := s.topo.Locals(s.node)
	procs := make([]int, n)
	for l := range n {
		r := s.topo.Rank(s.node, l)
		p := string(hello(all[r]).process())
		if _, ok := first[p]; !ok {
			first[p] = r
		}
		procs[l] = first[p]
	}
	s.procs = procs
	s.mine = first[string(process[:])]
	s.maker = s.mine == s.topo.Rank(s.node, 0)

	var h *host
	var err error
	switch {
	case len(first) == 1:
		h = newPrivateHost()
	case s.maker:
		if h, err = newSharedHost(); err != nil {
			return fmt.Errorf("%w: %w", errCannotShare, err)
		}
	default:
		if h, err = s.takeHost(ctx, s.mine); err != nil {
			return err
		}
		s.open(h)
		return s.showLife(h)
	}
	off, err := h.alloc(regionBytes(n))
	if err != nil {
		h.close()
		return err
	}
	h.head.world.Store(off)
	s.open(h)
	if len(first) == 1 {
		return nil
	}
	if off, err = h.alloc(pulseBytes(n)); err != nil {
		return err
	}
	h.head.pulses.Store(off)
	if err := s.showLife(h); err != nil {
		return err
	}
	return s.giveHost(ctx, len(first)-1)
}

// open lets the monitor see the host's memory.
func (s *site) open(h *host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = h
}

// giveUp drops what an unsuccessful try has left.
func (s *site) giveUp() {
	s.hideLife()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listen != nil {
		s.listen.Close()
	}
	for _, c := range s.unix {
		c.Write([]byte{'b'})
		c.Close()
	}
	s.listen, s.unix = nil, nil
	s.scanned.Store(0)
	if s.host != nil {
		s.host.close()
		s.host = nil
	}
}

// socket is the name of the abstract socket at which a host's memory is handed out.
func (s *site) socket() string { return fmt.Sprintf("goccl-%s-%d", s.id, s.node) }

// giveHost hands the memfd to the other processes of this host. The connections
// stay: their end is the end of a process.
func (s *site) giveHost(ctx context.Context, others int) error {
	l, err := listenHost(s.socket())
	if err != nil {
		return fmt.Errorf("%w: %w", errCannotShare, err)
	}
	s.mu.Lock()
	s.listen = l
	s.mu.Unlock()
	until := deadline(ctx)
	l.SetDeadline(until)
	defer context.AfterFunc(ctx, func() { l.SetDeadline(time.Now()) })()
	for got := 0; got < others; {
		c, err := l.AcceptUnix()
		if err != nil {
			return fmt.Errorf("%w: %d of %d processes came: %w", errCannotShare, got, others, err)
		}
		c.SetDeadline(time.Now().Add(5 * time.Second))
		var b [4]byte
		if _, err = c.Read(b[:]); err == nil {
			err = sendFD(c, s.host.fd)
		}
		if err != nil {
			c.Close() // a stranger, or a rank that gave up
			continue
		}
		c.SetDeadline(time.Time{})
		s.watch(c, int(binary.LittleEndian.Uint32(b[:])))
		got++
	}
	return nil
}

// takeHost takes the memfd from the host's leader, who may not be there yet.
func (s *site) takeHost(ctx context.Context, mine int) (*host, error) {
	until := deadline(ctx)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		fd, c, err := recvFD(s.socket(), mine, until)
		if err == nil {
			h, err := openHost(fd)
			if err != nil {
				c.Close()
				return nil, err
			}
			s.watch(c, s.topo.Rank(s.node, 0))
			return h, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errCannotShare, err)
		case <-time.After(pause):
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("%w: %w", errCannotShare, err)
		}
	}
}

// deadline is when to give up sharing: well before ctx ends, so that there is time
// left to go on without.
func deadline(ctx context.Context) time.Time {
	limit := time.Now().Add(10 * time.Second)
	if d, ok := ctx.Deadline(); ok {
		if half := time.Now().Add(time.Until(d) / 2); half.Before(limit) {
			return half
		}
	}
	return limit
}

// learn keeps the addresses at which ranks of other hosts are reached.
func (j *job) learn(said [][]byte) error {
	if j.topo.Nodes() == 1 {
		return nil
	}
	j.addrs = make([]netip.AddrPort, len(said))
	for r, m := range said {
		if err := j.addrs[r].UnmarshalBinary(m[1:]); err != nil {
			return fmt.Errorf("rank %d gave no address: %w", r, err)
		}
	}
	return nil
}

// bootFault is an error of the bootstrap.
func bootFault(err error) *Fault {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &Fault{Code: Timeout, Peer: -1, Err: err}
	case errors.Is(err, context.Canceled):
		return &Fault{Code: Canceled, Peer: -1, Err: err}
	}
	return &Fault{Code: Backend, Peer: -1, Err: err}
}
