#!/bin/bash
#SBATCH --job-name=llama-7b
#SBATCH --partition=gpu
#SBATCH --account=ml
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=80
#SBATCH --mem=900G
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --time=1460:00
#SBATCH --signal=TERM@60
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
set -euo pipefail

nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
export MASTER_ADDR=${nodes%%$'\n'*}
export MASTER_PORT=29500
export PET_NNODES=2
export PET_NPROC_PER_NODE=8
export PET_MASTER_PORT=29500
export PET_MAX_RESTARTS=3
export NCCL_DEBUG=INFO
export MLFLOW_TRACKING_URI=http://mlflow.mlflow.svc.cluster.local:5000

srun --nodes=$SLURM_NNODES --ntasks-per-node=1 --cpus-per-task=80 --kill-on-bad-exit=1 \
  --container-image=/images/train.sqsh \
  --container-mounts=/checkpoints:/checkpoints \
  bash -c 'NODE_RANK="$SLURM_NODEID"; export NODE_NAME="$SLURMD_NODENAME"; export NODE_RANK MASTER_ADDR PET_NODE_RANK="$NODE_RANK" PET_MASTER_ADDR="$MASTER_ADDR"; exec "$@"' node \
  torchrun train.py --config configs/7b.toml --note 'it'"'"'s a $(HOME) test'
