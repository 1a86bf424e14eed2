// Package signals keeps Go's signal handlers in force when a library brings its own.
//
// Go turns SIGSEGV into a panic that can be recovered, preempts goroutines with SIGURG, and delivers the rest to
// os/signal. A library that takes a signal for itself ends all that; one whose handler does not ask for the signal
// stack (SA_ONSTACK) makes the next such signal fatal, wherever it hits. Some do: libinfinipath, which Debian's
// libfabric draws in, takes SEGV, BUS, ILL, ABRT, INT and TERM; UCX the fatal ones; MPICH takes USR1.
package signals

// Guard notes the handlers that are set. The function that it returns, called when the library has been loaded or
// started, puts back what the library has changed, and says which signals that were.
//
//	restore := signals.Guard()
//	defer restore()
func Guard() (restore func() []int) { return guard() }
