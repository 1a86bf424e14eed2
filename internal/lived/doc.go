// Package lived measures the time that this process has lived through. It stands still while the
// process is stopped, by a signal, with its container, or with the virtual machine. Whatever waits
// for others is limited by it: those others may have been stopped as well.
//
// A [Clock] is moved on by whoever looks around anyway: a job's monitor. [Within] and [For] move themselves on, so they
// also count where there is no job yet. test/imports keeps other clocks out of the packages of the engine.
package lived
