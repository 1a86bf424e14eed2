// Package faults runs jobs where the system gives them too little, and where their processes end
// in unusual ways: little shared memory, few descriptors, little memory; panics, os.Exit, log.Fatal.
// What must come of it is a clear error on every rank, or that it works; never a SIGBUS, and never
// half a job.
//
// test/lab/faults.sh does the same with the network between hosts: loss, delay, partition; and
// test/lab/spares.sh with that of a job with spares, and of one that grows.
package faults
