package event

// subject is what can be decided once: the failure of a Comm, the loss of a rank of the world.
type subject struct {
	comm uint64
	lost int32
}

func (e *Event) subject() subject {
	if e.Comm == 0 {
		return subject{0, e.Peer}
	}
	return subject{e.Comm, -1}
}

// decisions are the subjects that have been decided: all losses, and the failures of the last
// Comms. That of one before them would be decided again, if anybody still proposed it, and tell
// nobody anything new.
type decisions struct {
	all  map[subject]bool
	list []subject // of the failures, the oldest first from next on
	next int
}

// keptFailures is how many there are.
const keptFailures = 4096

func (k *decisions) has(x subject) bool { return k.all[x] }

func (k *decisions) keep(x subject) {
	switch {
	case k.all[x]:
		return
	case k.all == nil:
		k.all = map[subject]bool{}
	}
	k.all[x] = true
	switch {
	case x.comm == 0:
	case len(k.list) < keptFailures:
		k.list = append(k.list, x)
	default:
		delete(k.all, k.list[k.next])
		k.list[k.next] = x
		k.next = (k.next + 1) % keptFailures
	}
}
