package region

import (
	"sync/atomic"
	"unsafe"
)

// A word of a region is a field of one of two structs, so no two uses share a word. A new field
// moves the fields behind it in all processes of the job alike, since these run the same version of
// this package.

// common are the words of the Comm itself, each with lines of its own.
type common struct {
	abort, left, sleepers, crowding, leaving apart
}

// apart is a word that shares no cache line, nor the line beside it that processors fetch with it.
type apart struct {
	word atomic.Uint64
	_    [120]byte
}

// words are those of a rank, one line after the other. Its last calls follow them.
type words struct {
	stands stands
	makes  makes
	calls  calls
}

// stands are words of where a rank stands, and what it asks of others.
type stands struct {
	state, agreed   atomic.Uint64
	wanted, request atomic.Uint64
	rests           atomic.Uint64
	draft           struct{ ballot, attempt, off atomic.Uint64 }
}

// makes are words of memory that it has made, and of its sleep.
type makes struct {
	stage                    atomic.Uint64
	waits                    atomic.Uint64
	split, splitSize, joined atomic.Uint64
	bell, core               atomic.Uint64
	sent                     atomic.Uint64
}

// calls are words beside its last calls.
type calls struct {
	row, touches atomic.Uint64
	out          atomic.Uint64
	_            [4]atomic.Uint64 // free
	entered      atomic.Uint64
}

const (
	wordsBytes = int(unsafe.Sizeof(words{}))
	line       = 64
)

var (
	_ [regionHead - unsafe.Sizeof(common{})]byte // they fit
	_ [line]byte                                 = [unsafe.Sizeof(stands{})]byte{}
	_ [line]byte                                 = [unsafe.Sizeof(makes{})]byte{}
	_ [line]byte                                 = [unsafe.Sizeof(calls{})]byte{}
)

func commonOf(g *Region) *common { return (*common)(g.base) }

func (g *Region) words(r int) *words { return (*words)(g.at(regionHead + r*g.rank)) }

// Abort is 0 until the Comm has failed on some rank of the host, and then 1 + the first of them.
func (g *Region) Abort() *atomic.Uint64 { return &commonOf(g).abort.word }

// Left counts the ranks that have closed the Comm, or have ended: see plane.Leave.
func (g *Region) Left() *atomic.Uint64 { return &commonOf(g).left.word }

// Sleepers is how many ranks of the host sleep until they are rung: see bell.
func (g *Region) Sleepers() *atomic.Uint64 { return &commonOf(g).sleepers.word }

// Crowding is RanksFit or RanksCrowd, 0 until a rank of the host has decided. It is decided once,
// so that all ranks take the same.
func (g *Region) Crowding() *atomic.Uint64 { return &commonOf(g).crowding.word }

// Leaving is how many ranks of the host want to close the Comm together, and Apart once one has not
// found them all.
func (g *Region) Leaving() *atomic.Uint64 { return &commonOf(g).leaving.word }

// Apart is a bit of Leaving.
const Apart uint64 = 1 << 63

// State is StateOpen, StateClosed or StateLeft.
func (g *Region) State(r int) *atomic.Uint64 { return &g.words(r).stands.state }

// Agreed is the last Shrink of the Comm that r has returned from, twice, and gaveUp if in vain.
func (g *Region) Agreed(r int) *atomic.Uint64 { return &g.words(r).stands.agreed }

// Wanted counts the requests for r's memory, and Request is the offset of the one that r makes, 0
// while it has made none: see package reach.
func (g *Region) Wanted(r int) *atomic.Uint64  { return &g.words(r).stands.wanted }
func (g *Region) Request(r int) *atomic.Uint64 { return &g.words(r).stands.request }

// Rests is, while r sleeps until it is rung, when that ends at the latest, in nanoseconds of proc.Uptime; else 0.
func (g *Region) Rests(r int) *atomic.Uint64 { return &g.words(r).stands.rests }

// Stage is the offset of r's staging memory, 0 while it has none.
func (g *Region) Stage(r int) *atomic.Uint64 { return &g.words(r).makes.stage }

// Sent is the offset of r's ring of what it sends alone, 0 while it has none.
func (g *Region) Sent(r int) *atomic.Uint64 { return &g.words(r).makes.sent }

// Waits is, while r sleeps in a call, that call<<32 | 1 + the rank it waits for; else 0.
func (g *Region) Waits(r int) *atomic.Uint64 { return &g.words(r).makes.waits }

// Split is the region that r has made for the last Comm that was split from this one with r as the
// first of its ranks on this host; 0 if that was refused. SplitSize is how many ranks of the host
// that Comm is of, joined how many of them have it.
func (g *Region) Split(r int) *atomic.Uint64     { return &g.words(r).makes.split }
func (g *Region) SplitSize(r int) *atomic.Uint64 { return &g.words(r).makes.splitSize }
func (g *Region) Joined(r int) *atomic.Uint64    { return &g.words(r).makes.joined }

// Bell says, while r sleeps, whose post is to wake it: see bell.
func (g *Region) Bell(r int) *atomic.Uint64 { return &g.words(r).makes.bell }

// Core is 1 + the processor on which r has last been seen to wait, 0 if it has not.
func (g *Region) Core(r int) *atomic.Uint64 { return &g.words(r).makes.core }

// Row is the offset of the table of r's outgoing pipes, 0 while it has none.
func (g *Region) Row(r int) *atomic.Uint64 { return &g.words(r).calls.row }

// Entered is the collective that r is in or has last been in: its number<<32 | the
// hash of all up to it.
func (g *Region) Entered(r int) *atomic.Uint64 { return &g.words(r).calls.entered }

// Touches is 1 while r touches the memory of others: see Reach.MayTouch.
func (g *Region) Touches(r int) *atomic.Uint64 { return &g.words(r).calls.touches }

// Out is how far r is with leaving this memory, of which it says nothing at first: IsIn, WaitsOut,
// ListedOut or IsOut. See plane.Leave.
func (g *Region) Out(r int) *atomic.Uint64 { return &g.words(r).calls.out }

// Draft is the memory that a rank has made for the Comm that a Shrink proposes. It is zero if there is none.
type Draft struct {
	Attempt     uint32 // which Shrink
	Ballot, Off uint64 // of the proposal, and where the memory lies
}

// Draft is what r says that it has made, and zero while it says something else. Between two looks
// at one attempt, a ballot stands behind the words that belong to it.
func (g *Region) Draft(r int) Draft {
	w := &g.words(r).stands.draft
	d := Draft{Attempt: uint32(w.attempt.Load()), Ballot: w.ballot.Load(), Off: w.off.Load()}
	if w.attempt.Load() != uint64(d.Attempt) || w.ballot.Load() != d.Ballot {
		return Draft{}
	}
	return d
}

// SetDraft says what r, the caller's rank, has made. A reader takes no word of one draft for
// another's: while they change, the ballot is none.
func (g *Region) SetDraft(r int, d Draft) {
	w := &g.words(r).stands.draft
	w.ballot.Store(0)
	w.attempt.Store(uint64(d.Attempt))
	w.off.Store(d.Off)
	w.ballot.Store(d.Ballot)
}
