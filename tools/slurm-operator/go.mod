// Charts of slurm-operator, whose definitions and values tests read; never built.
module trainstack.local/tools/slurm-operator

go 1.26.0

require github.com/SlinkyProject/slurm-operator v1.1.0
