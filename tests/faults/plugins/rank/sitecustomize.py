"""Loaded by Python itself in every process of a node under test; changes one rank's arithmetic, nothing else.

TSLAB_FAULT is JSON: {"kind": "corrupt" | "nan" | "miscount", "rank": R, "proof": FILE, ...}. Every time the
fault bites, one line is appended to FILE. The product neither knows this file nor offers a hook for it: torch
itself is wrapped when the rank, or the process that it is forked from, imports it.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

WORD = 8  # bytes of an int64


def here(fault: dict[str, Any]) -> bool:
    """Report whether this process is the rank that the fault is meant for; a forked one learns it late."""
    return "TORCHELASTIC_RESTART_COUNT" in os.environ and os.environ.get("RANK") == str(fault["rank"])


def bitten(fault: dict[str, Any], what: str) -> None:
    """Leave one line of proof."""
    with open(fault["proof"], "a") as stream:  # noqa: PTH123 - nothing may be imported here that the rank has not
        stream.write(what + "\n")


def corrupt(module: ModuleType, fault: dict[str, Any]) -> None:
    """Change one int64 element of what this rank contributes to every n-th all-reduce of so many bytes."""
    original, calls = module.all_reduce, [0]

    def all_reduce(tensor: Any, *arguments: Any, **options: Any) -> Any:
        counted = str(tensor.dtype) == "torch.int64" and tensor.numel() * WORD >= fault["least_bytes"]
        if counted and here(fault):
            calls[0] += 1
            if calls[0] % fault["every"] == 0:
                place = tensor.numel() // 3
                flat = tensor.view(-1)
                flat[place] = flat[place] ^ fault["mask"] if fault["mask"] else 0
                bitten(fault, f"call {calls[0]}: element {place} of {tensor.numel()}")
        return original(tensor, *arguments, **options)

    module.all_reduce = all_reduce  # type: ignore[attr-defined]


def poison(module: ModuleType, fault: dict[str, Any]) -> None:
    """Make the gradient of one parameter of every DDP model NaN from the n-th backward pass on."""
    spoil(module, fault, lambda passes: passes >= fault["after"], lambda gradient: gradient * float("nan"))


def miscount(module: ModuleType, fault: dict[str, Any]) -> None:
    """Make one element of the gradient of one parameter wrong in every n-th backward pass of a DDP model."""

    def wrong(gradient: Any) -> Any:
        spoilt = gradient.clone()
        spoilt.view(-1)[gradient.numel() // 3] *= 1.5
        spoilt.view(-1)[gradient.numel() // 3] += 1e-3
        return spoilt

    spoil(module, fault, lambda passes: passes % fault["every"] == 0, wrong)


def spoil(
    module: ModuleType, fault: dict[str, Any], when: Callable[[int], bool], how: Callable[[Any], Any]
) -> None:
    """Change the gradient of one parameter of every DDP model in some of its backward passes."""
    original = module.DistributedDataParallel.__init__

    def initialise(model: Any, *arguments: Any, **options: Any) -> None:
        original(model, *arguments, **options)
        if not here(fault):
            return
        parameters = [item for item in model.named_parameters() if item[1].requires_grad]
        name, parameter = parameters[fault["parameter"] % len(parameters)]
        passes = [0]

        def hook(gradient: Any) -> Any:
            passes[0] += 1
            if not when(passes[0]):
                return gradient
            bitten(fault, f"backward {passes[0]}: {name}")
            return how(gradient)

        parameter.register_hook(hook)

    module.DistributedDataParallel.__init__ = initialise


FAULTS: dict[str, tuple[str, Callable[[ModuleType, dict[str, Any]], None]]] = {
    "corrupt": ("torch.distributed", corrupt),
    "nan": ("torch.nn.parallel.distributed", poison),
    "miscount": ("torch.nn.parallel.distributed", miscount),
}


class Loader(importlib.abc.Loader):
    """Runs a module's own loader and then changes the module."""

    def __init__(self, inner: importlib.abc.Loader, change: Callable[[ModuleType], None]) -> None:
        self.inner, self.change = inner, change

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.inner.exec_module(module)
        self.change(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Finder(importlib.abc.MetaPathFinder):
    """Finds one module, once, to wrap its loader."""

    def __init__(self, name: str, change: Callable[[ModuleType], None]) -> None:
        self.name, self.change = name, change

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = Loader(spec.loader, self.change)
        return spec


def main() -> None:
    """Arm the fault, which bites in the rank it is meant for."""
    fault = json.loads(os.environ.get("TSLAB_FAULT", "{}"))
    if fault:
        module, change = FAULTS[fault["kind"]]
        sys.meta_path.insert(0, Finder(module, lambda found: change(found, fault)))


main()
