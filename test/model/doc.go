// Package model explores what may happen to the protocols that no test can drive through all
// orders of events: Shrink's agreement, the log of a host, and whether a meeting counts in which a
// job grows. It visits every state that a few ranks can come to when up to two of them end, are
// given up, or cannot connect, and up to two connections break with what is on its way over them,
// at every step; and says after which steps a promise is broken. Who decides the cause of a failure
// is explored in the same way by the tests of ccl/internal/plane/gone.
//
// Shrink is the engine's own code, package agree, also where spares replace lost ranks and the
// hosts divide. The others are models: they follow the engine's rules, but not its code.
//
// A checker that finds nothing may see nothing. So errors are planted, among them those that
// the engine once had, and each must be found.
//
// The stories of testdata are single runs of these systems, to be read: a Replace, one with a loss
// in it, one of hosts that divide; a Grow, and one whose lead ends.
package model
