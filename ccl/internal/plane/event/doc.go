// Package event is what ranks of a job report, most often a failure, and the order in which reports are believed.
//
// An [Event] travels through the log of a host to the processes there, and from host to host.
// Within a host the order of the log is the order in which all believe. Between hosts one process
// decides: it keeps the proposals of all in a [Sequencer], which also counts the sides of a
// mismatch before it is decided ([Parties]). Every process keeps one, so that any can take over.
// What a process has proposed itself it keeps in [Proposals] until it is decided.
//
// The protocol stands in the package comment of plane.
package event
