// Package scale simulates the control plane of the largest jobs over virtual time: how a failure is
// told to all hosts, and what ranks say to each other in a Shrink. It has tests alone; `make scale`
// runs them for 120,960 ranks on 10,080 hosts and prints a table, and the usual tests run a small
// job. How a job of that size begins is simulated in ccl/boot, beside the code that it runs.
//
// What decides is the engine's own code: the places of hosts in tree and ring ([gone.Ranks.Neighbors]),
// what a host has seen of an event and passes on ([control.Flood]), which host decides
// ([event.Sequencer]), and the agreement of Shrink ([agree.Party]). What is simulated is the rest:
// links with latency and bandwidth, connections that keep the order of what they carry, a process
// that handles one frame after the other, hosts that end, and messages that are late.
//
// A rank that is one of many in the same state stands for all of them where what it holds grows
// with the job: of the members of an agreement one is real, and the lead is.
package scale
