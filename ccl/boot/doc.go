// Package boot answers who a process is among the ranks of its job, and gives it
// one allgather with them: all that is needed to set up everything else.
//
// [Env] reads the environment that a launcher has set and joins the job. [TCP],
// [File] and [Local] join without one; [Spawn] is a launcher. All of them return a
// [Boot], which serves as ccl.Bootstrap and is closed when the job is set up.
//
// # How ranks meet
//
// Rank 0 listens. On Linux the ranks of a host meet at an abstract unix socket, where the first to
// come, the host's relay, serves the others; elsewhere each rank is its own relay. In jobs of up to
// 64 ranks every relay has a connection to rank 0. In larger ones the relays form a tree: rank 0
// and each relay serve 16 others, and those that reach no relay, and send those that come later on
// to these. So hosts must be able to connect with each other, as data do anyway; a relay that does
// not reach the one to which it was sent is served by rank 0. Every connection starts with a
// handshake that proves the job's secret. Another user can take the names of these sockets: then
// each rank goes to rank 0 itself, or, in a job on one host, the ranks meet at a socket in a
// directory where only their user makes files. Joining has two phases: rank 0 collects all ranks,
// then gives all of them one verdict. A rank that is missing, started twice, or started with
// another size or by another version is an [*Error] on all ranks that names it.
//
// How rank 0 is found, where GOCCL_ROOT and GOCCL_STORE do not say:
//
//	launcher                         rank 0 is found
//	any, on one host (Linux)         at an abstract socket named by the job; the kernel says whose it is
//	Hydra, Intel MPI, srun --mpi=pmi2  over PMI-1, on PMI_FD: rank 0 publishes its address and a secret
//	srun                             on the first host of SLURM_STEP_NODELIST, port from job and step
//	PALS                             on rank 0's host by PALS_APINFO, or the first of PBS_NODEFILE, port from PALS_APID
//	torchrun                         at MASTER_ADDR, port from the run, not MASTER_PORT: its agent has that
//	RANK and WORLD_SIZE              at MASTER_ADDR:MASTER_PORT; in a pod, localhost there means all interfaces on rank 0
//	a pod with PET_ variables        at PET_MASTER_ADDR:PET_MASTER_PORT, or PET_RDZV_ENDPOINT
//	a pod of an Indexed Job, JobSet  at the pod with index 0 of the same headless service, port from the job's name there
//	Open MPI, on several hosts       not at all: set GOCCL_ROOT or GOCCL_STORE
//
// "Port from" means eight ports of GOCCL_PORTS, else from 32768 to 36863, by a hash: rank 0 takes the first
// that is free, and the others find out by the handshake whom they have met.
//
// # Which launcher counts
//
// The innermost, in the order of the table below from GOCCL_RANK on: a Slurm step
// that mpiexec's daemons run in says nothing about mpiexec's ranks. All values come
// from the one that counts. It is an error, which names GOCCL_LAUNCHER as the way
// out, if Open MPI's and PMI's rank or size differ, or if RANK or WORLD_SIZE differ
// from those of a launcher other than torchrun. GOCCL_RANK is never contradicted.
//
// # The job's secret
//
// In order: GOCCL_SECRET_FILE or GOCCL_SECRET; what Spawn has made for the ranks it
// started (it passes through GOCCL_SECRET); what Cray's PMI gives an application;
// what rank 0 has made and published over PMI or in GOCCL_STORE, or handed out on
// its host; what it has made and left in a file for its owner alone, named by the job and its step, in the user's home
// or where the job was submitted, if that is on a file system known to be shared (NFS, Lustre, GPFS,
// BeeGFS, Ceph, PanFS, AFS, SMB). If there is none the job runs, and ccl.NewComm warns once unless all of
// it is on this host; GOCCL_REQUIRE_SECRET=1 refuses. TCP, File, NewStore, halls and stores in directories
// take the environment's as well, where the program gives none. No secret is ever an argument of a command.
//
// # Every variable this package reads
//
//	variable              meaning
//	GOCCL_LAUNCHER        the launcher that counts: goccl, torchrun, openmpi, pmi, pals, slurm, env (RANK and WORLD_SIZE), pet, kubernetes, none (run alone)
//	GOCCL_ROOT            host:port where rank 0 listens; ":port" for all its interfaces. Goes before GOCCL_STORE
//	GOCCL_PORTS           from-to, such as 20000-20099: the ports to listen at where no port is named. The same on all ranks
//	GOCCL_STORE           a directory that all ranks share, to find rank 0 by
//	GOCCL_HALL            a store in which a process that starts late finds the job that runs (package ccl asks it): host:port of a Hall, or a directory
//	GOCCL_RELAY           host:port of a Relay, through which processes connect that do not reach each other
//	GOCCL_NEWCOMER        set by Spawn for a rank that it starts again: it comes late
//	GOCCL_JOB             a name that tells jobs apart that share a GOCCL_STORE or a port, under GOCCL_RANK or RANK, or a GOCCL_HALL
//	GOCCL_HOSTID          which ranks share a host: those with the same; default: those that can
//	GOCCL_SECRET_FILE     a file with the job's secret, which only its owner can read
//	GOCCL_SECRET          the job's secret
//	GOCCL_REQUIRE_SECRET  1: fail rather than run without a secret
//	GOCCL_BOOT_TIMEOUT    how long joining may take where the context has no deadline: 30s, 5m, or seconds; default 5m
//	GOCCL_ROOT_FD         set by Spawn: the descriptor where rank 0 listens
//	GOCCL_BLAME_FD        set by Spawn: the pipe into which ranks write whom their failures name (package ccl writes)
//	GOCCL_RANK GOCCL_SIZE GOCCL_LOCAL_RANK GOCCL_LOCAL_SIZE
//	                      set by Spawn or by hand. GOCCL_SIZE alone says how many there are under PALS, and of pods
//	TORCHELASTIC_RUN_ID TORCHELASTIC_RESTART_COUNT RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE MASTER_ADDR MASTER_PORT
//	                      torchrun
//	OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE OMPI_MCA_ess_base_jobid PMIX_NAMESPACE
//	                      Open MPI
//	PMI_RANK PMI_SIZE PMI_FD PMI_JOBID MPI_LOCALRANKID MPI_LOCALNRANKS
//	                      Hydra, Intel MPI, Slurm's pmi2; PMI_PORT is recognised, but not spoken: set GOCCL_ROOT
//	PALS_RANKID PALS_LOCAL_RANKID PALS_LOCAL_SIZE PALS_NODEID PALS_APID PALS_APINFO PBS_NODEFILE
//	                      PALS
//	PMI_CONTROL_PORT PMI_SHARED_SECRET
//	                      Cray's PMI, beside PALS or Slurm
//	SLURM_PROCID SLURM_STEP_NUM_TASKS SLURM_LOCALID SLURM_NODEID SLURM_STEP_NUM_NODES SLURM_STEP_TASKS_PER_NODE SLURM_STEP_NODELIST SLURM_JOB_ID SLURM_STEP_ID
//	                      Slurm, inside a step only: the shell of salloc and the script of sbatch are one rank
//	HOME SLURM_SUBMIT_DIR PBS_O_WORKDIR
//	                      where a secret made for the job is left, if its hosts share that directory
//	XDG_RUNTIME_DIR HOME  where the ranks of a host meet, if others have taken the names of all their sockets
//	RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
//	                      any other launcher, Kubeflow's PyTorchJob among them
//	PET_NODE_RANK PET_NNODES PET_NPROC_PER_NODE PET_MASTER_ADDR PET_MASTER_PORT PET_RDZV_ENDPOINT KUBERNETES_SERVICE_HOST
//	                      a pod of Kubeflow's trainer or PyTorchJob, whose one process no torchrun has started
//	JOB_COMPLETION_INDEX HOSTNAME
//	                      a pod of a Kubernetes Indexed Job or JobSet; GOCCL_SIZE or WORLD_SIZE is its completions
package boot
