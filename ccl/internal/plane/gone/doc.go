// Package gone decides, in each process of a job, which ranks have gone and which cause of a failure
// counts. It has no clock, no lock and no connection: a [State] takes an event in, and returns the
// [Effects] that its process carries out. Package plane keeps one under Job.mu, package event has
// the events and the order of proposals, and test/model explores this code as it is.
//
// One cause for all. On a host, events are believed in the order in which they stand in its log.
// Between hosts a rank proposes; the lead of the lowest host that has one puts all proposals in
// order (Next), and what it has decided is believed everywhere in that order: each host passes
// events on in the order in which it believes them, and connections keep that. While the hosts can
// reach each other, every rank of a Comm so gets the same cause. A proposal that is not decided in
// time, as in a partition, is believed by the ranks that receive it.
//
// A host is led by its lowest rank that has neither left nor been reported lost. That follows from
// what is known of ranks, so all processes agree on it as soon as they have heard the same.
//
// testdata has jobs of a few hosts as stories: what happens, what each process hears, and what it does.
package gone
