// Package status is what the ranks of a job tell each other of where they stand, and what follows
// from it: which rank is late ([LateIn]), and which ranks wait for each other ([Circle]).
//
// A rank publishes a [Status] once its call has waited for long, and when its Comm has failed. A
// process keeps what it has received in a [Table], which any goroutine may use.
package status
