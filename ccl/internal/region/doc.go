// Package region lays out the memory that the ranks of one Comm on one host share: the abort word,
// what each rank says of itself and of its last calls, and the slots of the rounds. It says where
// things lie and which words publish which. Packages plane (waiting, failing) and rounds say which
// ranks wait for them, and why.
package region
