package plane

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/lived"
)

// Where a rank stands now. A rank whose limit has ended asks the processes of the ranks that keep
// it waiting, over a connection with each, and no others: that costs the same in a job of any size.
// The waits lead it from host to host. In a large Comm most limits end at the same time; so it
// first asks only those that it waits for itself, and gives the ranks beside the late one a moment
// to name it.

// askStream is the stream number, of no Comm, of what the lower of two ranks of the world asks; the
// next one that of the other.
const askStream = 0xd0

const (
	fewRanks = 64                    // of a Comm in which whom to ask may follow from what all have told
	othersTo = 10 * time.Millisecond // in a larger one: for ranks nearer to the late one to fail the Comm
	mostSaid = 32                    // statuses of an answer
)

// question is what a rank is asked.
type question struct {
	comm   uint64 // a Comm of both
	calls  uint32 // collectives that the one that asks has begun there
	lasted int64  // nanoseconds that its call has lasted: a wait that a failure has ended before that is no reason
}

const questionBytes = 8 + 4 + 8

func (q *question) encode() []byte {
	le := binary.LittleEndian
	return le.AppendUint64(le.AppendUint32(le.AppendUint64(nil, q.comm), q.calls), uint64(q.lasted))
}

func questionOf(b []byte) question {
	le := binary.LittleEndian
	return question{le.Uint64(b), le.Uint32(b[8:]), int64(le.Uint64(b[12:]))}
}

// answer is where a rank stands: in the Comm that it was asked of, and where it waits in others.
// With it come the ranks of its host that are behind in that Comm.
type answer struct {
	awaits []int32 // the ranks of that Comm for which the asked rank waits, if they can be listed
	all    []status.Status
}

func (a *answer) encode() []byte {
	b := []byte{byte(len(a.awaits)), byte(len(a.all))}
	for _, r := range a.awaits {
		b = binary.LittleEndian.AppendUint32(b, uint32(r))
	}
	for i := range a.all {
		b = append(b, a.all[i].Encode(make([]byte, status.Wire))...)
	}
	return b
}

// answerOf reads what encode wrote. It comes from another host: what makes no sense is an error.
func answerOf(in io.Reader) (a answer, err error) {
	var head [2]byte
	if _, err = io.ReadFull(in, head[:]); err != nil {
		return a, err
	}
	if head[0] > event.MissingMost || head[1] > mostSaid {
		return a, fmt.Errorf("an answer with %d ranks and %d statuses", head[0], head[1])
	}
	b := make([]byte, 4*int(head[0])+status.Wire*int(head[1]))
	if _, err = io.ReadFull(in, b); err != nil {
		return a, err
	}
	for range head[0] {
		r := int32(binary.LittleEndian.Uint32(b))
		if b = b[4:]; r < 0 {
			return a, errors.New("an answer that names no rank")
		}
		a.awaits = append(a.awaits, r)
	}
	for range head[1] {
		var s status.Status
		if err = s.Decode(b[:status.Wire]); err != nil {
			return a, err
		}
		a.all = append(a.all, s)
		b = b[status.Wire:]
	}
	return a, nil
}

// fits reports whether an answer of rank w of the world is about ranks that are there.
func (a *answer) fits(g *group.Group, w int32, ranks int) bool {
	for _, r := range a.awaits {
		if int(r) >= g.Size() {
			return false
		}
	}
	own := false
	for i := range a.all {
		s := &a.all[i]
		if int(s.World) >= ranks || int(s.For) >= ranks || s.Comm == g.ID() &&
			(int(s.Rank) >= g.Size() || g.World(int(s.Rank)) != int(s.World)) {
			return false
		}
		own = own || s.World == w && s.Comm == g.ID()
	}
	return own || g.RankOf(int(w)) < 0
}

// stands is the answer of rank w of the world, false where that is no rank of this process. Of a
// Comm that has failed it tells of a wait that has ended so.
func stands(j *Job, w int32, q *question) (a answer, here bool) {
	j.mu.Lock()
	all := j.comms.members(nil)
	j.mu.Unlock()
	for _, c := range all {
		if c.Group.World(c.Group.Rank()) != int(w) {
			continue
		}
		here = true
		if asked := c.Group.ID() == q.comm; asked {
			a.awaits = c.Standing.listed()
			a.all = append(a.all, behind(c, q.calls)...)
			a.all = append(a.all, standsNow(c, 0))
		} else if s := standsNow(c, q.lasted); s.Doing == status.Waits {
			a.all = append(a.all, s)
		}
		if len(a.all) >= mostSaid {
			break
		}
	}
	a.all = a.all[:min(len(a.all), mostSaid)]
	return a, here
}

// standsNow is where c's rank stands, or, if c has failed since a call of that length began, where it stood then.
func standsNow(c *Member, lasted int64) status.Status {
	n := &c.Standing.note
	n.Lock()
	defer n.Unlock()
	s, _, ok := c.Standing.status(c.Site.Job.Clock())
	if c.Fate.cause.Load() != nil {
		switch failed := time.Since(c.Clock.Born) - time.Duration(c.Fate.failedAt.Load()); {
		case int64(failed) > lasted:
		case n.atEnd != nil:
			s = *n.atEnd
		case n.published.Failed:
			s = n.published
		}
	}
	if !ok && s.Size == 0 {
		s = status.Status{Comm: c.Group.ID(), Rank: int32(c.Group.Rank()), Size: int32(c.Group.Size()),
			World: int32(c.Group.World(c.Group.Rank())), Peer: -1, To: -1, For: -1}
	}
	if s.SetName(c.Standing.Label.Name()); s.Doing != status.Waits {
		return s
	}
	if s.Peer >= 0 { // not whom it takes to be late: that is to be asked as well
		s.For = int32(c.Group.World(int(s.Peer)))
	} else {
		s.For = c.Standing.awaited(&s)
	}
	return s
}

// behind lists the other ranks of this host that have begun fewer collectives than so many.
func behind(c *Member, calls uint32) (list []status.Status) {
	c.Share.Look(func() {
		for r := range c.Share.N {
			n := c.Share.Local.Entered(r).Load() >> 32
			if r == c.Share.Me || int32(uint32(n)-calls) >= 0 || len(list) == event.MissingMost {
				continue
			}
			rank := c.Group.LocalRank(r)
			list = append(list, status.Status{Comm: c.Group.ID(), Calls: n, Rank: int32(rank), Size: int32(c.Group.Size()),
				World: int32(c.Group.World(rank)),
				Node:  int32(c.Site.Here.Node), Peer: -1, To: -1, For: -1})
		}
	})
	return list
}

// listed are the ranks that the call under way waits for, where these can be listed.
func (c *Standing) listed() []int32 {
	c.note.Lock()
	defer c.note.Unlock()
	if !c.note.asleep {
		return nil
	}
	return slices.Clone(c.note.on.awaits[:c.note.on.n])
}

// mayAsk reports whether rank w of the world is still to be asked. In a job on one host only the
// ranks of this process can be: of the others the host's memory has to do, and what they have told.
func (s *search) mayAsk(w int32) bool {
	j := s.c.Site.Job
	return s.asking && s.answers[w] == nil && !slices.Contains(s.mute, w) && (j.Net.TCP != nil || livesIn(j, int(w)))
}

// livesIn reports whether rank w of the world is one of this process.
func livesIn(j *Job, w int) bool {
	return slices.ContainsFunc(j.Sites(), func(s *Site) bool {
		l := j.World.Topo.Local(w)
		return s.Here.Node == j.World.Topo.Node(w) && l < len(s.Here.Procs) && s.Here.Procs[l] == s.Here.Mine
	})
}

var errUnasked = errors.New("there is nobody to ask")

// take takes in the answer of rank w of the world.
func (s *search) take(w int32, a *answer) {
	if s.answers == nil {
		s.answers, s.ofComm = map[int32]*answer{}, map[int]*status.Status{}
	}
	s.answers[w] = a
	for i := range a.all {
		if o := &a.all[i]; o.Comm == s.c.Group.ID() && (o.World == w || s.ofComm[int(o.Rank)] == nil) {
			s.ofComm[int(o.Rank)] = o
		}
	}
	a.all = slices.DeleteFunc(slices.Clone(a.all), func(o status.Status) bool { return o.World != w })
}

// askKey is that of the stream on which rank from of the world asks rank to where it stands, while
// a call of that Comm ends.
func askKey(comm uint64, from, to uint32) tcp.Key {
	stream := uint32(askStream)
	if from > to {
		stream++
	}
	return tcp.MakeKey(group.ChildID(comm, 1<<42, 0)&^tcp.Announced, stream, from, to)
}

// askRank asks rank w of the world.
func askRank(ctx context.Context, c *Member, w int32, q *question) (a answer, err error) {
	me := uint32(c.Group.World(c.Group.Rank()))
	conn, err := c.Site.Job.Net.TCP.OpenControl(ctx, askKey(q.comm, me, uint32(w)), me, c.Site.Job.Net.Addrs.At(int(w)))
	if err != nil {
		return a, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err = conn.Write(q.encode()); err != nil {
		return a, err
	}
	return answerOf(conn)
}

// askedFor is how long a rank that asks has to say what.
const askedFor = time.Second

// answersAsked answers ranks of other processes that ask where ranks of this one stand.
func answersAsked(j *Job) {
	for i := range uint32(2) {
		j.Net.TCP.OnOffer(askStream+i, func(key tcp.Key, self uint32) { answerAsked(j, key, self) })
	}
}

// answerAsked answers one that asks where rank self of the world stands.
func answerAsked(j *Job, key tcp.Key, self uint32) {
	from := key.A ^ key.B ^ self
	if int(from) >= j.World.Topo.Size() || int(self) >= j.World.Topo.Size() {
		return
	}
	ctx, cancel := lived.Within(j.Background(), askedFor)
	defer cancel()
	conn, err := j.Net.TCP.OpenControl(ctx, key, self, j.Net.Addrs.At(int(from)))
	if err != nil {
		return
	}
	defer conn.Close()
	var b [questionBytes]byte
	if err := auth.Await(conn, b[:], askedFor); err != nil {
		return
	}
	q := questionOf(b[:])
	if a, here := stands(j, int32(self), &q); here {
		conn.SetWriteDeadline(time.Now().Add(askedFor))
		_, _ = conn.Write(a.encode())
	}
}
