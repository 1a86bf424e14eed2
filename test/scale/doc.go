// Package scale runs jobs of many processes on this machine: how long they take to join, what each
// of them holds, and how soon all hear that one is gone. The usual tests run a few ranks; `make
// thousand` runs 1,000.
//
// Larger jobs are simulated, with constants that `make fit` compares with jobs of this machine: see
// ccl/internal/scale, and TestMeetingSimulated of ccl/boot.
package scale
