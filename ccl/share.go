//go:build oneccl || mpi

package ccl

// shareMPI is how to hold the MPI that oneCCL uses: leaveMPI, or what a build with MPI has.
var shareMPI = leaveMPI
