"""Checkpoint of the instrumented steps."""

import torch

from smoke_training.probes.training import decomposition, transformer


def test_ranks_save_so_much_of_a_model_and_no_more() -> None:
    with torch.device("meta"):
        large = transformer.Transformer(transformer.GPU_TIMING).to(dtype=torch.bfloat16).state_dict()
    some = decomposition._some_of(large)
    saved = sum(value.nbytes for value in some.values())
    assert decomposition.SAVED_BYTES / 2 < saved <= decomposition.SAVED_BYTES
    small = transformer.Transformer(transformer.CPU_TIMING).state_dict()
    assert decomposition._some_of(small).keys() == small.keys()
