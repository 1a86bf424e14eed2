// Package chaos makes random things go wrong in random jobs, and checks what every rank says
// of it. Its tests need the build tag fault:
//
//	go test -tags fault ./test/chaos                        500 cases
//	go test -tags fault ./test/chaos -args -cases 10000     more of them
//	go test -tags fault ./test/chaos -v -args -seed 123     one of them, again
//
// A case follows from its seed alone: the ranks (goroutines, shared memory, TCP, mixed; 2 to 8),
// the calls with their answers, and what goes wrong on which rank at which point. One case in
// four has no fault, and must report none.
//
// What must be true: every other rank returns within the bound, from whatever it is in; all of
// them say the same, and name the rank at fault; every call that returned no error has the right
// results; Shrink then makes a Comm of the ranks that are left, on which calls work; and nothing
// is left behind: goroutines, descriptors, mappings, processes.
package chaos
