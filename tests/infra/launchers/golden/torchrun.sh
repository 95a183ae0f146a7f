#!/bin/bash
# Start on each of 2 nodes, with NODE_RANK (0 .. 1) and MASTER_ADDR
# (the address of node 0) set.
set -euo pipefail
: "${NODE_RANK:?set it to the index of this node, 0 .. 1}"
: "${MASTER_ADDR:?set it to the address of node 0}"
export MASTER_PORT=29500
export PET_NNODES=2
export PET_NPROC_PER_NODE=8
export PET_MASTER_PORT=29500
export PET_MAX_RESTARTS=3
export NCCL_DEBUG=INFO
export MLFLOW_TRACKING_URI=http://mlflow.mlflow.svc.cluster.local:5000
exec bash -c 'export NODE_RANK MASTER_ADDR PET_NODE_RANK="$NODE_RANK" PET_MASTER_ADDR="$MASTER_ADDR"; exec "$@"' node torchrun train.py --config configs/7b.toml --note 'it'"'"'s a $(HOME) test'
