// Package inject makes things go wrong at named points of transports, algorithms and the
// bootstrap, for tests. Without the build tag fault its functions are empty and inlined: a
// program pays nothing for the points.
//
// With the tag, GOCCL_FAULT in the environment of a process says what happens where: a list,
// separated by commas, of
//
//	[rank@]point:hit:action[:argument]
//
// the hit-th time (from 1) that the process passes the point; with a rank, only in the process
// whose GOCCL_RANK it is. The actions are
//
//	kill            the process is killed, as by the kernel
//	stop[:500ms]    the process is stopped, and continued after that time; without, never
//	exit            the process ends with code 0, as if all were well
//	panic           the goroutine panics
//	delay:20ms      the goroutine sleeps
//	gc              the garbage collector runs, again and again, for 50 ms
//	cut             the connection is closed (points of connections)
//	flip            one bit of the bytes changes (points that carry bytes)
//	drop            what was to be sent is lost (points of the control plane)
//	cancel, abort   a function that the test has set is called (see [Set])
//	wrong           the program makes this mistake, at every pass (points of mistakes)
//	from:4294967280 counters begin there, at every pass (points of counters)
package inject
