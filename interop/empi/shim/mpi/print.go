package mpi

import "fmt"

// PrintAllProcs makes Printf and Println print on all ranks, not only on rank 0.
var PrintAllProcs = false

// Printf is fmt.Printf on rank 0; with PrintAllProcs it is AllPrintf on the others.
func Printf(format string, args ...any) {
	if WorldRank() == Root {
		fmt.Printf(format, args...)
	} else if PrintAllProcs {
		AllPrintf(format, args...)
	}
}

// AllPrintf is fmt.Printf on every rank, which it begins with.
func AllPrintf(format string, args ...any) {
	fmt.Printf("P%d: "+format, append([]any{WorldRank()}, args...)...)
}

// Println is fmt.Println on rank 0; with PrintAllProcs it is AllPrintln on the others.
func Println(args ...any) {
	if WorldRank() == Root {
		fmt.Println(args...)
	} else if PrintAllProcs {
		AllPrintln(args...)
	}
}

// AllPrintln is fmt.Println on every rank, which it begins with.
func AllPrintln(args ...any) {
	fmt.Println(append([]any{fmt.Sprintf("P%d:", WorldRank())}, args...)...)
}
