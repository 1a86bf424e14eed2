// Command capi is goccl as a library for C, and for what calls C: PyTorch, JAX, Julia, Rust. include/goccl.h is its
// interface.
//
//	capi/build.sh libgoccl.so
//
// A Comm is known to C by a number. Calls on one Comm are made one at a time, under its lock: a
// blocking one on the calling thread, unless calls are queued; a queued one by the Comm's own
// stream, whose goroutine calls back.
package main

func main() {}
