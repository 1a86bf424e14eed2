// Package region lays out the memory that the ranks of one Comm on one host share: the abort word, what each rank says of
// itself and of its last calls, and the slots of the rounds. It says where things lie and which words publish which. Who
// waits for them, and why, is said in package plane (waiting, failing) and package rounds.
package region
