#!/bin/sh
# rank.sh COMMAND..: runs it as one of several ranks on one GPU, in a job that `bench launch` has started. NCCL before 2.30.3 takes
# two ranks on one GPU only if it believes them to be on two hosts.
[ "${NCCL_MULTI_RANK_GPU_ENABLE:-}" = 1 ] || export NCCL_HOSTID="goccl-rank-$GOCCL_RANK"
exec "$@"
