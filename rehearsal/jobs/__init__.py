"""The training service of the emulated AWS, and what runs beside it: jobs, functions, MLflow apps."""
