// Package ccltest runs a function as the ranks of a job inside a test: goroutines,
// processes, or either of them as if on several hosts, so that TCP runs between them.
//
// Each rank gets a testing.TB of its own, on which FailNow, and so package require,
// ends that rank alone. The others are not left waiting: their Comm is aborted, and
// the Context of their TB ends. What fails on them for that reason is not reported.
//
// # Processes
//
// With [Processes] the test binary starts itself anew, once per process, to run
// nothing but the test that called [Run]. So the lines before that call are run in
// every process, too, and what the tests around a subtest do after it; other calls of
// Run do nothing there.
// This needs no TestMain, and works with -race, -short, -run and flags of the test's
// own. Coverage counts what the test's own process ran.
//
// # Faults
//
// [Kill], [Stall] and [Partition] make a rank fail as it is about to make a given call, so that
// a test sees what a program makes of that. With [VirtualTime] no such test takes longer than
// what it computes.
//
// [World] connects the hosts by a network in memory, in virtual time too: it delays, cuts and resets connections, and
// stops and kills hosts. Package simnet is that network.
package ccltest
