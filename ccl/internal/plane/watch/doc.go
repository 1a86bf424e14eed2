// Package watch is what a process sees of its job: the memory of its host, whose other processes
// beat and end there (pulse.go), tell each other of failures and of where ranks stand (board.go,
// hostlog.go) and leave what they share (leave.go, reap.go); and the connections with other hosts
// (neighbors.go), which say whether a loss there is certain (certain.go).
//
// It decides nothing, and starts nothing but what listens to a socket. Package gone decides, and
// package plane, whose monitor looks here, carries out. What watching needs of the job is a [Job].
package watch
