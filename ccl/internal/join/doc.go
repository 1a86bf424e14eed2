// Package join begins a job: how its ranks find out which of them share a host, come by that host's
// memory, and learn where the others are reached.
//
// [Join] takes these steps, with n ranks, P processes and H hosts. An allgather goes through the
// bootstrap, which is not needed after Join has returned.
//
//  1. Allgather of a hello: a hash of the version and the options that must agree, a random process
//     id, what identifies the host, and from rank 0 a seed, which names the job. Each rank
//     contributes 48 bytes, rank 0 a byte more: whether it has a store. After a difference comes
//     one allgather more, in which rank 0 and the
//     first rank that differs say their options as text: the error names the rank and the option.
//  2. Hosts are numbered in the order of their lowest ranks. In a host with several processes, the
//     one with the lowest rank makes a memfd and opens an abstract Unix socket whose name only the
//     job's ranks know. One byte a rank tells all whether it could.
//  3. The other processes receive the memfd there, and that of the host's slices (SCM_RIGHTS). A job
//     that grows has a new memfd, and takes over that of the slices. Both ends must belong to the same
//     user (SO_PEERCRED) and know what all ranks said in step 1. A process that finds nobody is on
//     another host.
//  4. Allgather of a verdict and, with several hosts, of the address and port where each process
//     listens: 7 bytes a rank (IPv4) or 19 (IPv6). Processes that could not share memory repeat
//     steps 2 to 4 once among themselves, then count as hosts of their own.
//  5. The control plane: the leader of host h connects to those of hosts (h-1)/2, 2h+1 and 2h+2,
//     and to two on either side of a ring. A rank that waits here tells rank 0, which reports a
//     lost rank at once.
//  6. With several hosts, allgather of a verdict. All ranks get a Comm, or all an error.
//  7. Where rank 0 has a store, it asks there whether its job is the first, and an allgather tells all.
//
// Split is three allgathers over the parent (16, 8 and 8 bytes a rank), the last one a verdict, and
// one new region per host and color. SplitWith begins with one more, of 48 bytes. Neither makes a
// connection.
//
// # Choices
//
// A memfd, passed by SCM_RIGHTS. A file in /dev/shm needs a name, survives a kill, and is absent or
// tiny in containers. A memfd is sealed against shrinking, so a peer cannot cause a fault, and
// regions are reserved with fallocate, so a full machine is an error and not a SIGBUS. A process
// that receives the descriptor is on the same host: that is the test, and not the names of hosts.
//
// HostID. Before that test, a host is identified by the kernel's boot id and the network namespace,
// which abstract sockets do not leave. GOCCL_HOSTID replaces both, so that one machine can act as
// several hosts.
package join
