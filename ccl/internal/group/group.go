// Package group has what all ranks of a Comm agreed on when it was made: one value, which nothing
// writes after [New]. What a call does may follow from it, since it is the same on all ranks but
// for this rank's own place. A [Book] has what the ranks of a job have told each other when it
// began: where each is reached.
package group

import (
	"time"

	"github.com/goccl/goccl/internal/algo"
)

// Group says which rank of which Comm, and how its ranks are placed.
type Group struct {
	id         uint64
	rank, size int
	members    Members       // rank -> rank of the world
	topo       algo.Topology // of this Comm
	ring       algo.Topology // the same, with its hosts in the order that schedules take
	agreed     Agreed
}

// Agreed are the options that NewComm and Split have compared: all ranks have the same.
type Agreed struct {
	Timeout     time.Duration // of a call; 0: none
	PeerTimeout time.Duration // 0: none
	Strict      bool
	Unchecked   bool
	RankOrder   bool
	Table       algo.Table // of choices
}

// New is rank rank of the Comm of that id, whose ranks are those of the world.
func New(id uint64, world Members, topo algo.Topology, rank int, agreed Agreed) Group {
	return Group{id: id, rank: rank, size: topo.Size(), members: world, topo: topo, ring: topo, agreed: agreed}
}

// ID tells the Comms of a job apart.
func (g *Group) ID() uint64 { return g.id }

// Rank is this rank.
func (g *Group) Rank() int { return g.rank }

// Size is the number of ranks.
func (g *Group) Size() int { return g.size }

// Topology says which ranks share a host.
func (g *Group) Topology() algo.Topology { return g.topo }

// Ring is Topology with the hosts in the order that schedules between them take.
func (g *Group) Ring() algo.Topology { return g.ring }

// OrderHosts sets that order. All ranks call it between the same calls, on the goroutine that makes them.
func (g *Group) OrderHosts(hosts []int) { g.ring = algo.Ordered(g.topo, hosts) }

// World is the rank in the job's first Comm of rank r.
func (g *Group) World(r int) int { return g.members.World(r) }

// RankOf is the rank in this Comm of rank w of the world, -1 if it is none.
func (g *Group) RankOf(w int) int { return g.members.Rank(w, g.size) }

// LocalRank is the rank in the Comm of member r of this host.
func (g *Group) LocalRank(r int) int { return g.topo.Rank(g.topo.Node(g.rank), r) }

// IsHere reports whether rank r is on this rank's host.
func (g *Group) IsHere(r int) bool { return g.topo.Node(r) == g.topo.Node(g.rank) }

// Timeout is Options.Timeout, 0 if there is none.
func (g *Group) Timeout() time.Duration { return g.agreed.Timeout }

// PeerTimeout is Options.PeerTimeout, 0 if there is none.
func (g *Group) PeerTimeout() time.Duration { return g.agreed.PeerTimeout }

// Strict reports whether no rank leaves a call before all have come.
func (g *Group) Strict() bool { return g.agreed.Strict }

// Unchecked reports whether the ranks do not compare their calls.
func (g *Group) Unchecked() bool { return g.agreed.Unchecked }

// RankOrder reports whether reductions are in rank order between hosts, too.
func (g *Group) RankOrder() bool { return g.agreed.RankOrder }

// Table is the table of choices of algorithms between hosts.
func (g *Group) Table() algo.Table { return g.agreed.Table }
