// Package campaign makes random jobs of a seed, and checks every byte and every error that their ranks get.
//
//	make campaign SEEDS=1-1000                                        a thousand jobs
//	go test ./test/campaign -v -run Campaign -args -case 123          one of them, again
//	go test ./test/campaign -v -run Campaign -args -case 123/keep=2,5/hosts=1   less of it
//
// A job is a function of its seed: how many ranks in how many processes on how many hosts, over
// which wire, with spares and late processes; then steps, each a function of the seed and the
// number of the step. A step makes blocking calls, queued calls, groups, messages, values, calls
// that must be refused; it makes Comms of Split and Subset and does the same on them, also on
// several at once; it has a Comm fail in one of ten ways, such as a connection that is reset under
// messages; it kills a process, and goes on with Shrink or Replace; it takes in late processes by
// Grow.
//
// TestWorld makes such jobs in one process and in virtual time (ccl/ccltest/simnet): each host is a
// process of its own, and at a random moment one stops or ends, or loses its power, or a connection
// is reset, or one way, or all of a host's, become black holes. It is here, as it makes the steps
// that jobs of processes make.
//
//	make world SEEDS=1-1000                                           a thousand of these
//	go test ./test/campaign -v -run World -args -case 123/keep=2,5    one of them, two of its steps
//
// The world has steps of its own: messages that nobody receives, two ranks that receive from each other,
// and a host that is behind all others, after which the job is to be quiet. In some jobs packets come at
// few instants, a rank closes the Comm and ends, or two hosts have no route to each other; a second host
// ends soon after the first; the firewall of a host forgets its connections while nobody calls anything.
// From seed 1001 on jobs also reorder their hosts, and grow by GrowAll, or with a context that ends.
//
// Where nothing may fail (no fault, a host or all of them that stand still, a short cut, a firewall that
// forgets) nothing does. Else all ranks that were not cut off hear the same, the rank that is named is
// on a host that was disturbed, every step ends in time, the others go on with Replace or Shrink, and
// nothing is left: no goroutine, no connection.
//
// Every rank knows what each call must give. It compares dst, the bytes beside it, and src, and
// says what is wrong in a line of its own. The judge compares what the ranks say of a failure: all
// that were in the Comm have the same Code, Peer and Missing, the rank at fault is the one that did
// it, nobody waited for longer than ten times the promise, and every rank that was not killed came
// to its end.
//
// A job that fails is made smaller: steps are left out, the hosts become one, the processes
// goroutines, for as long as it still fails. Its name says how to run what is left.
package campaign
