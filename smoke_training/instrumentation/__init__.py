"""Measure the parts of a training step in any training loop, and find slow ranks.

```python
with smoke_training.instrument(model, optimizer, loader, every=50, jsonl="steps.jsonl") as run:
    for batch in run.batches():
        loss = model(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if run.step % 1000 == 0:
            with run.saving("/checkpoints/my-run") as folder:
                save(model, optimizer, folder)
```

A step lasts from asking for one batch to asking for the next. Its seconds are

- `data`: waiting for the loader;
- `compute`: from the model's forward pass to the end of its backward pass, and the optimizer's step;
- `exposed_communication`: waits for other ranks. With `DistributedDataParallel`, from the moment the last
  gradient is ready to the moment the reduced gradients are, which could not overlap with the backward pass;
  with FSDP2, tensor or pipeline parallelism and own collectives, the waits in Python (`waits.py`);
- `checkpoint`: inside `run.saving()` or `run.checkpoint()`;
- `other`: everything else in the loop.

Overhead per step is a few clock readings (`benchmarks/instrument_overhead.py`). A loop that hangs is reported
with the collective that a rank did not enter (`hang.py`). Ranks compare their compute times every `every`
steps through the process group's key-value store, in a separate thread: no collective, no barrier, no wait in
the step itself. On CUDA the marks are events on the current stream, read one window later. Checkpoints that
`run.saving()` gave a folder are committed, announced and pruned by the stack's policy
(docs/explanation/checkpoints.md), in a thread of their own.
"""

from smoke_training.instrumentation.retention import Retention as Retention
from smoke_training.instrumentation.run import InstrumentedRun as InstrumentedRun
from smoke_training.instrumentation.run import instrument as instrument
from smoke_training.instrumentation.run import metrics as metrics
from smoke_training.instrumentation.step_records import Record as Record

Run = InstrumentedRun  # the name before, in annotations of users' code
