// Package plane is the control plane of a job: how a rank waits, how a failure becomes one
// cause for all, and what is known of ranks that wait. It moves no data. Its parts:
//
//   - A [Job] is what the ranks of one job in this process have in common: how time passes (clock.go,
//     package lived), how other hosts are reached, what is decided of ranks that have gone and of
//     causes (packages gone and event), where all ranks stand (status), the Comms (comms.go), and
//     the monitor (monitor.go, check.go). A process comes into it and leaves it in enter.go.
//   - A [Site] is this process's part of one host of the job: what it sees there, which is package
//     watch's, and what it does about that. It makes and hears the connections with other hosts
//     (neighbors.go). A process has one, unless its ranks were told to act as several hosts. What it
//     is told of a rank that has gone, it settles with the others (settle.go, succession.go); what
//     it then knows, departed.go answers.
//   - A [Member] is one rank of one Comm. Its parts (state.go) are its Group, which rank it is of
//     what (package group); its [Share], what it has in common with the ranks of its host
//     (share.go); its [Order], the calls it has made; [Current], the one under way; its [Fate]; and
//     its [Standing], what is known of it. A Member waits (wait.go, doorbell.go) and fails
//     (member.go).
//
// # Waiting
//
// Every wait ends in Pause (wait.go), which looks for a failure, a closed peer, the end of the
// context and the timeout. A rank first looks again and again. Then it yields to other goroutines
// and processes, for 0.5 ms; if ranks outnumber processors, only where another rank of its
// processor has something to do (spread.go). Then it sleeps until the rank that it waits for rings
// its bell: a channel between goroutines, the kernel between processes. A wait for other hosts
// sleeps in poll(2) until something arrives, for 1 ms at a time, and later up to 5, or up to 40
// where ranks get their turn on a processor late, 200 in jobs of a thousand. Where it cannot (it is
// for ranks of this host as well, or the system has no poll) or other goroutines want the
// processor, it takes naps of 20 to 500 microseconds, on Linux by a kernel timer, since Go's timers
// count in milliseconds. Where yields have shown that programs compute on the same cores, a rank
// does not yield, but sleeps after some 25 microseconds (yield.go).
//
// Calls read no clock. The monitor stamps a coarse clock every 5 ms, and timeouts are measured by
// that. Without a call the monitor is idle, and the lowest bit of the clock says that it is late.
// A call that sees the bit reads the real clock and wakes the monitor. A monitor that gets its
// turn on a processor late dozes: it sleeps for nine times as long, and is woken by reports
// of failures alone.
//
// # Failure
//
// A failure is one event: the Comm, the rank at fault, the first cause and the call. Within a host
// it is appended to a log of 64 entries in shared memory. The monitor of every process reads the
// log every 5 ms; a waiting rank reads it when it sees the abort word. An entry that a living
// process has not read is not overwritten: its writer keeps the event until there is room. A slot
// whose writer was killed is passed over. Until the event comes, the abort word of a Comm says that
// it has failed.
//
// Between hosts events flood a tree and a ring of connections, at most seven per host, apart from
// all data connections. Each has a number of its origin, by which a host passes it on once: nothing
// is passed on but by a control.Flood. A rank proposes its event. The leader of the lowest host puts
// the proposals in order and commits them, so all ranks get the same cause. Before it commits a
// mismatch it counts the ranks on each side, since the odd rank may be the reporting rank.
// A proposal without a decision within 150 ms, as in a partition, is believed by the ranks that
// receive it.
//
// Each host is led by its lowest surviving rank. This follows from what all ranks have heard, so a
// successor needs no election: it dials the neighboring hosts, which accept it even if the report of
// its predecessor's end has not reached them. A leader that leaves in good order stays connected
// until its successor has come, or none is left (handOver, 300 ms at most): nobody dies unseen
// between the two.
//
// Sockets close late: Linux frees the memory of a dead process first, about 90 ms for each
// gigabyte. So a thread of each process holds a robust futex list with one word in shared memory,
// in which the kernel sets a bit at once. A stopped process does not die; its pulse, a counter in
// shared memory, stands still. Both are read by the monitor and cost a call nothing.
//
// When a limit ends, the late ranks are found by following the waits from host to host: each rank that
// the fault would go by is asked where it stands, over a connection of its own (blame.go, ask.go).
//
// Shrink runs the agreement of internal/agree over these connections.
//
// Between hosts a call under way outlives the end of a process, for as long as what that has sent
// still arrives: lastcall.go.
//
// # The order of locks
//
// A goroutine that holds a lock takes only locks that are below it here. No lock is held while a
// call waits for another rank. Those that are held over a read, a write or a dial are of type
// simhost.Mutex.
//
//	step.mu             one step of joining; held while it is made, which may wait for other hosts
//	Job.Order           the order in which this process believes events; held while one is handled
//	watch.Log.kept      events that the host's log has no room for yet
//	note                what a Member tells the monitor of the call under way
//	Share.life          keeps the memory of a Comm mapped while another goroutine looks at it
//	watch.Leavers.mu    ranks of this process that leave the memory of Comms
//	event.Proposals.mu  what this process has proposed; held while that is compared with what is believed
//	Job.mu              all that the process knows of its job: Comms, connections, its gone.State
//	watch.Job.Mu        the same lock
//	jobs                the jobs of the process, and how many Comms keep each
//	watch.ringer.mu     the addresses of other processes' ringers
//	control.Conn.wmu    what is written to a neighbor; a write takes at most 20 ms, or 200 ms at the end
//	lived.limit.mu      what is left of a limit; those that it is within come after it
//	lived.Clock.mu      the time that this process has lived through
//	status.Table.mu     what is known of where ranks stand
//	control.Flood.mu    which events and statuses have come before
//
// The last six are leaves: nothing is taken under them.
//
// # Choices
//
// A tree and a ring between hosts. A mesh would be O(n) connections per rank. A center would make
// one rank special. A tree alone would be cut by a host that dies.
//
// Memory comes back. The memfd has a size of 1 TiB. A freed region is emptied and its offset is
// reused. The free ranges are words in shared memory, each changed by compare-and-swap, so a killed
// process loses at most one range. Other ranks unmap freed MakeSlice memory when they next map
// something. What a stopped rank may still read or write stays until it leaves or has ended. Ranks
// that have ended are counted out by the others (leave.go and pendingexit.go of package watch).
package plane
