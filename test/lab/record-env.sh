#!/bin/bash
# usage: record-env.sh OUTDIR
#
# Records what launchers set for their ranks (2 hosts of 2 ranks, on netlab and Slurm), one file per
# case and rank, OUTDIR/CASE.RANK.env: what the detection of launchers is tested with. torchrun is
# recorded where python3 -m torch.distributed.run works.
set -eu

lab=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
"$lab/need"
mkdir -p "$1"
out=$(cd "$1" && pwd)
netlab=$lab/netlab.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

slurm=''
clean() {
	[ -z "$slurm" ] || "$lab/slurm-down.sh" "$slurm"
	"$netlab" down
}
trap clean EXIT

limit() { timeout -k 5 90 "$@"; }

# The launchers' part of the environment, one line per variable.
show='env -0 | tr "\n\0" " \n" | grep -E "^(SLURM|SLURMD|PMI|PMIX|OMPI|MPI|HYD|PALS|PBS|RANK|LOCAL_|WORLD_|GROUP_|ROLE_|MASTER_|TORCH|OMP_|MPIR)[A-Za-z0-9_]*=" | grep -v OMPI_ALLOW | sort'

# record CASE VARIABLE: the command of a rank whose number is in VARIABLE.
record() { echo "$show > $out/$1.\${$2}.env"; }
# record_shell CASE: the command of a shell that is no rank.
record_shell() { echo "$show > $out/$1.none.env"; }

"$netlab" up 2
slurm=$("$lab/slurm-up.sh" -l)
export SLURM_CONF=$slurm/slurm.conf
limit srun -N2 --ntasks-per-node=2 sh -c "$(record srun SLURM_PROCID)"
limit srun -N2 -n3 sh -c "$(record srun-uneven SLURM_PROCID)"
limit srun --mpi=pmi2 -N2 --ntasks-per-node=2 sh -c "$(record srun-pmi2 SLURM_PROCID)"
limit srun --mpi=pmix -N2 --ntasks-per-node=2 sh -c "$(record srun-pmix SLURM_PROCID)"
limit salloc -Q -N2 --ntasks-per-node=2 \
	sh -c "$(record_shell salloc-shell); srun -n1 -N1 sh -c '$(record salloc-srun1 SLURM_PROCID)'"
cat >"$slurm/job.sh" <<-END
	#!/bin/sh
	$(record_shell sbatch-shell)
	mpirun.openmpi sh -c '$(record sbatch-openmpi OMPI_COMM_WORLD_RANK)'
	mpiexec.mpich sh -c '$(record sbatch-hydra PMI_RANK)'
END
limit sbatch --wait -Q -N2 --ntasks-per-node=2 -o /dev/null "$slurm/job.sh"
"$lab/slurm-down.sh" "$slurm"

slurm=$("$lab/slurm-up.sh" -i -l)
export SLURM_CONF=$slurm/slurm.conf
printf '%s\nexit\n' "$(record_shell salloc-interactive-step)" |
	limit script -qec "salloc -Q -N2 --ntasks-per-node=2" /dev/null >/dev/null
"$lab/slurm-down.sh" "$slurm"
slurm=''
unset SLURM_CONF

limit "$netlab" exec 1 mpirun.openmpi --mca plm_rsh_agent "$lab/netlab-rsh" --host h1:2,h2:2 \
	sh -c "$(record openmpi OMPI_COMM_WORLD_RANK)"
limit "$netlab" exec 1 mpiexec.mpich -launcher rsh -launcher-exec "$lab/netlab-rsh" -hosts h1:2,h2:2 -n 4 \
	sh -c "$(record hydra PMI_RANK)"
for machine in aurora polaris; do
	pbs=("$netlab" exec 1 "$lab/fake-pals/pbs-run" -m "$machine" 2)
	limit "${pbs[@]}" sh -c "$(record_shell "fakepals-$machine-shell")"
	limit "${pbs[@]}" mpiexec --envall --np 4 --ppn 2 sh -c "$(record "fakepals-$machine" PALS_RANKID)"
done

# torchrun CASE OPTIONS..: an agent on each host.
torchrun() {
	local case=$1 host agents=()
	shift
	for host in 1 2; do
		limit "$netlab" exec "$host" python3 -W ignore -m torch.distributed.run --no-python \
			--nnodes 2 --nproc-per-node 2 "${@//%n/$((host - 1))}" sh -c "$(record "$case" RANK)" 2>/dev/null &
		agents+=($!)
	done
	for host in "${agents[@]}"; do wait "$host"; done
}
if python3 -c 'import torch.distributed.run' 2>/dev/null; then
	torchrun torchrun-static --node-rank %n --master-addr 10.77.0.1 --master-port 29501
	torchrun torchrun-c10d --rdzv-backend c10d --rdzv-endpoint 10.77.0.1:29502 --rdzv-id job7
fi
