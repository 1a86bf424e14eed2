// Package soak makes collectives for a long time and watches that nothing grows:
//
//	go test ./test/soak                                                a minute's worth of it
//	go test ./test/soak -timeout 0 -args -small 1e8 -mixed 1e6         make soak
//	go test ./test/soak -timeout 0 -args -for 30m                      by the clock
//
// Every result is checked. Resident memory must stay within 1 MiB of what it was after the
// first tenth, and the numbers of open files, mappings and goroutines what they were.
package soak
