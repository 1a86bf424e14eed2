package join

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/lived"
)

// A server is an abstract unix socket at which the maker of a host's memory hands it to the host's
// other processes, while they join. Anybody on the host can find it and connect. Another user is
// turned away; a process of this user has to prove that it belongs to the job, on a goroutine of
// its own. So a stranger gets nothing, and holds up nobody.
//
//	the process   rank 4, little-endian | proof 32
//	the server    proof 32, with the memfd, and that of slices
//	the process   connClose or connKeep 1
type server struct {
	s       *plane.Site
	h       *shm.Host // the memory
	key     []byte
	secret  auth.Secret // of the job, which key proves as well
	l       *net.UnixListener
	ctx     context.Context // ends when the server is shut
	stop    context.CancelFunc
	givenUp context.Context // ends when the memory is given up: the end of a process that has it does not count any more
	drop    context.CancelFunc
}

const (
	proofBytes   = sha256.Size
	requestBytes = 4 + proofBytes
	requestTime  = 5 * time.Second // for a process to say all it has to say
	// A process notes the end of another by the end of their connection only where the kernel raises no flag for one of
	// the two: see package proc. So a process of many ranks on a host needs no descriptor for each.
	connClose = 'c'
	connKeep  = 'k'
)

// proof shows that its maker knows key, in a role.
func proof(key []byte, role string, rank uint32) []byte {
	m := hmac.New(sha256.New, key)
	fmt.Fprintf(m, "%s %d", role, rank)
	return m.Sum(nil)
}

// socketName is what only ranks of the job can tell.
func socketName(key []byte, role string, rank uint32) string {
	return "goccl-" + hex.EncodeToString(proof(key, role, rank)[:16])
}

// serverName is that of the server of a host's memory.
func serverName(key []byte) string { return socketName(key, "door", 0) }

// serveMemory begins to hand out this host's memory.
func serveMemory(s *plane.Site, key []byte, secret auth.Secret) error {
	l, err := shm.Listen(serverName(key))
	if err != nil {
		return watch.ShareError(err)
	}
	d := &server{s: s, h: s.Here.Host, key: key, secret: secret, l: l}
	d.ctx, d.stop = context.WithCancel(context.Background())
	d.givenUp, d.drop = context.WithCancel(context.Background())
	s.Here.SetEntrance(d)
	s.Here.Ends.Attending.Go(d.accept)
	return nil
}

// Shut ends what serveMemory began. Processes that have the memory already may say how they go on.
func (d *server) Shut() {
	d.stop()
	d.l.Close()
}

// Drop gives up the memory.
func (d *server) Drop() { d.drop() }

// accept answers those that come, until the server is shut.
func (d *server) accept() {
	for {
		c, err := d.l.AcceptUnix()
		switch {
		case err == nil && auth.SameUser(c, d.secret) == nil:
			d.s.Here.Ends.Attending.Go(func() { d.serve(c) })
		case err == nil:
			c.Close()
		case d.ctx.Err() != nil:
			return
		default: // out of descriptors, say: those that are being answered give theirs back
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// serve gives the memory to the process at the other end of c, if that belongs to the job.
func (d *server) serve(c *net.UnixConn) {
	limit, end := lived.Within(d.ctx, requestTime)
	defer end()
	unguard := context.AfterFunc(limit, func() { c.Close() })
	defer unguard()
	var b [requestBytes]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		c.Close()
		return
	}
	rank := binary.LittleEndian.Uint32(b[:])
	if !hmac.Equal(b[4:], proof(d.key, "knocks", rank)) || !unguard() ||
		shm.SendFDs(c, proof(d.key, "answers", rank), d.h.Descriptor(), d.h.Slices().Descriptor()) != nil {
		c.Close()
		return
	}
	defer context.AfterFunc(d.givenUp, func() { c.Close() })()
	if err := auth.Await(c, b[:1], max(requestTime, d.s.Job.Silence())); err != nil || b[0] != connKeep {
		// it is of the job, and may be slow
		c.Close() // if it has died just now, it has not joined, as the bootstrap says
		return
	}
	d.s.Here.WatchEnd(c, int(rank), d, d.s.LostProcess)
}

// receiveMemory takes the memory from the host's maker, which has begun to serve it before: if it
// is not there, it is on another host. Its slices lie where those of from do, if that is the same
// memory.
func receiveMemory(ctx context.Context, s *plane.Site, key []byte, secret auth.Secret,
	from *shm.Host) (*shm.Host, *net.UnixConn, error) {
	fds, c, err := requestMemory(ctx, s, key, secret)
	if err != nil {
		return nil, nil, watch.ShareError(err)
	}
	h, err := shm.Open(fds[0])
	if err != nil {
		shm.CloseFD(fds[1])
	} else if err = h.OpenSlices(fds[1], from); err != nil {
		h.Close()
	}
	if err != nil {
		c.Close()
		return nil, nil, watch.ShareError(err)
	}
	return h, c, nil
}

// requestMemory connects with the server and returns the descriptors of the memory and of that of
// its slices, and the connection.
func requestMemory(ctx context.Context, s *plane.Site, key []byte, secret auth.Secret) ([]int, *net.UnixConn, error) {
	ctx, end := lived.Within(ctx, shareLimit(ctx))
	defer end()
	rank := uint32(s.Here.Mine)
	c, err := dialServer(ctx, serverName(key))
	if err != nil {
		return nil, nil, err
	}
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()
	if err = auth.SameUser(c, secret); err == nil {
		_, err = c.Write(append(binary.LittleEndian.AppendUint32(nil, rank), proof(key, "knocks", rank)...))
	}
	if err == nil {
		var fds []int
		if fds, err = shm.RecvFDs(c, proof(key, "answers", rank), 2); err == nil {
			return fds, c, nil
		}
	}
	c.Close()
	return nil, nil, err
}

// dialServer connects with a server. One that too many have come to at once is tried again.
func dialServer(ctx context.Context, name string) (*net.UnixConn, error) {
	for {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: "@" + name, Net: "unix"})
		if err == nil || !errors.Is(err, syscall.EAGAIN) || ctx.Err() != nil {
			return c, err
		}
		time.Sleep(time.Millisecond)
	}
}

// keepOrClose tells the maker of the memory, at the other end of c, whether the two need to notice
// each other's end by c.
func keepOrClose(s *plane.Site, c *net.UnixConn) {
	if s.Here.Processes.KernelTells(0) { // the maker has the host's first rank
		c.Write([]byte{connClose})
		c.Close()
		return
	}
	c.SetDeadline(time.Time{})
	c.Write([]byte{connKeep}) // if this fails, the end of c follows
	s.Here.WatchEnd(c, s.Job.World.Topo.Rank(s.Here.Node, 0), nil, s.LostProcess)
}

// shareLimit is after how long to give up sharing: before ctx ends, so that there is time left to go on without.
func shareLimit(ctx context.Context) time.Duration {
	if d, ok := lived.Left(ctx); ok {
		return min(time.Minute, d/2)
	}
	return time.Minute
}
