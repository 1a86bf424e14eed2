package status

import "time"

// The late rank. The rank that a call waits for may itself wait, in another Comm, for a rank that is late. All of them
// wait about as long, and any of their calls may be the first to give up. So a rank that gives up follows the waits that
// all ranks have told of, in any Comm, to a rank that waits for nobody, and names that one.

// Waiters are the statuses of the ranks of the world that wait, by rank.
type Waiters map[int32][]*Status

// WaitsIn picks them out, in one pass. A rank whose Comm has failed within giveUp has waited there until then.
func WaitsIn(all []Status, now int64, giveUp time.Duration) Waiters {
	ws := Waiters{}
	for i := range all {
		s := &all[i]
		if s.Doing == Waits && now-s.heard <= int64(s.holds()) && (!s.Failed || now-s.heard <= int64(giveUp)) {
			ws[s.World] = append(ws[s.World], s)
		}
	}
	return ws
}

// LateBehind is the rank of the world at the end of the waits from rank w on; last is the status of the rank that waits
// for it. It is -1 if there is no end, since ranks wait for each other or do not say for which. me is the rank that asks.
func (ws Waiters) LateBehind(w, me int32) (end int32, last *Status) {
	seen := map[int32]bool{me: true}
	var visit func(w int32, by *Status) (int32, *Status)
	visit = func(w int32, by *Status) (int32, *Status) {
		if seen[w] {
			return -1, nil
		}
		seen[w] = true
		for _, s := range ws[w] {
			if s.For >= 0 {
				if end, last := visit(s.For, s); end >= 0 {
					return end, last
				}
			}
		}
		if len(ws[w]) > 0 {
			return -1, nil
		}
		return w, by
	}
	return visit(w, nil)
}

const (
	publishAgain = 2 * time.Second       // after so long a rank that waits says so again,
	perRank      = 10 * time.Millisecond // and so much more for each rank of the Comm
)

// Again is the time after which a rank of a Comm of size ranks says again that it waits.
func Again(size int) time.Duration { return publishAgain + time.Duration(size)*perRank }

// holds is how long a status of a rank that waits is true.
func (s *Status) holds() time.Duration { return 2 * Again(int(s.Size)) }
