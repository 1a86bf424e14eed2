// Package soak makes collectives for a long time and watches that nothing grows:
//
//	go test ./test/soak                                                    a minute's worth of it
//	go test ./test/soak -timeout 0 -args -small 1e8 -mixed 1e6 -pairs 1e8 -churn 1e5  make soak
//	go test ./test/soak -timeout 0 -args -for 30m                          by the clock
//
// Every result is checked. Resident memory, and the memory that ranks share, must stay within 1 MiB of what they were
// after the first tenth, the number of mappings within 32, and that of open files and goroutines what it was.
package soak
