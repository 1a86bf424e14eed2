// Package chaos makes random things go wrong in random jobs, and checks what every rank says
// of it. Its tests need the build tag fault:
//
//	go test -tags fault ./test/chaos                        500 cases of each kind
//	go test -tags fault ./test/chaos -args -cases 10000     more of them
//	go test -tags fault ./test/chaos -v -run TestR6Corners -args -seed 123     one of them, again
//
// A case follows from its seed alone. There are three kinds.
//
// TestR6RandomFaults has one Comm: the ranks (goroutines, shared memory, TCP, mixed; 2 to 8), the
// calls with their answers, and what goes wrong on which rank at which point. One case in four
// has no fault, and must report none.
//
// TestR6Corners has many Comms, each used by a goroutine of its own on a part of one shared slice,
// and trouble of one of twelve sorts: see sort.
//
// TestR6Data has one Comm whose ranks are of different builds (-builds), take themselves for CPUs of
// different makers, and make random calls on memory of all sorts, such as no other process can read
// included. What it looks at is data: the results, what lies beside them, and slices after a failure.
//
// What must be true of the first two: every other rank returns within the bound, from whatever it is in;
// all of them name the rank at fault, and a Comm without that rank goes on; every call that
// returned no error has the right results, and memory that no call writes keeps what the program
// wrote; Shrink then makes one Comm of the ranks that are left; and nothing is left behind:
// goroutines, descriptors, mappings, processes.
package chaos
