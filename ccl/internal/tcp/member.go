package tcp

import "errors"

// A Node holds what peers dial before this end is opened. It must not hold what nobody will ever
// open: so it knows which communicators its ranks have left. It cannot remember all of them, in a
// process that makes millions. Of an Announced one it knows instead which are there.

// Announced is a bit of Key.Comm: a rank's Node has been told to Expect the communicator before any
// peer can dial that rank.
const Announced = 1 << 62

// member is a rank of a communicator.
type member struct {
	comm uint64
	rank uint32
}

var (
	// ErrGone says that the peer has closed the communicator.
	ErrGone = errors.New("the peer has closed the communicator")
	// ErrDone says that the peer has come to the end of what the communicator was for.
	ErrDone = errors.New("the peer has done with the communicator")
	// ErrQuit says that the peer has given up what the communicator was for.
	ErrQuit = errors.New("the peer has abandoned the communicator")
	// ErrFailed says that the communicator has failed on the peer: the reason is on its way, and the
	// connection is tried again until it comes.
	ErrFailed = errors.New("the communicator has failed on the peer")
)

// Expect says that a rank here has a communicator that is Announced. Forget or Fail ends that.
func (n *Node) Expect(comm uint64, rank uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if comm&Announced != 0 {
		n.live[member{comm, rank}] = true
	}
}

// Forget says that a rank here has closed a communicator: it drops the connections
// that peers dialed to it and it has not opened. A peer that dials it later gets ErrGone.
func (n *Node) Forget(comm uint64, rank uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := member{comm, rank}
	if comm&Announced == 0 {
		n.over.keep(m, ErrGone)
	}
	n.leave(m)
}

// Fail is Forget of a communicator that has failed: peers are to learn why, and not that this rank has left. A
// peer that dials it tries until then.
func (n *Node) Fail(comm uint64, rank uint32) { n.end(member{comm, rank}, ErrFailed) }

// Finish is Forget of a rank that has come to the end of what the communicator was
// for. A peer that dials it later gets ErrDone.
func (n *Node) Finish(comm uint64, rank uint32) { n.end(member{comm, rank}, ErrDone) }

// Quit is Forget of a rank that has given up what the communicator was for. A peer that dials it
// gets ErrQuit, until it is forgotten or finished.
func (n *Node) Quit(comm uint64, rank uint32) { n.end(member{comm, rank}, ErrQuit) }

// end remembers why m has ended, and leaves it.
func (n *Node) end(m member, why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over.keep(m, why)
	n.leave(m)
}

// leave drops what peers have dialed to m and m has not opened. n.mu is held.
func (n *Node) leave(m member) {
	delete(n.live, m)
	for id, e := range n.ends {
		if id.Comm == m.comm && id.self == m.rank && !e.opening {
			n.drop(id, e)
		}
	}
}

// ended is why m takes no connection any more, nil if it does. n.mu is held.
func (n *Node) ended(m member) error {
	if why, ok := n.over.why[m]; ok {
		return why
	}
	if m.comm&Announced != 0 && !n.live[m] {
		return ErrGone
	}
	return nil
}

// memory is why the last members of all have ended.
type memory struct {
	why  map[member]error
	list []member // oldest first from next on
	next int
}

// keptEnded is how many there are: failures and agreements of the last minutes, whatever happens.
const keptEnded = 4096

func (o *memory) keep(m member, why error) {
	if o.why == nil {
		o.why = map[member]error{}
	}
	switch o.why[m] {
	case nil:
	case ErrQuit:
		o.why[m] = why
		return
	default:
		return // a rank that has done with it says so to the end
	}
	if len(o.list) < keptEnded {
		o.list = append(o.list, m)
	} else {
		delete(o.why, o.list[o.next])
		o.list[o.next] = m
		o.next = (o.next + 1) % keptEnded
	}
	o.why[m] = why
}
