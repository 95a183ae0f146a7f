"""Model FLOPs utilisation and FLOPs per token of a causal transformer (pure)."""

QUARTER_PRECISION = ("fp8", "float8", "mxfp8", "mxfp4", "fp4", "nvfp4")


def flops_per_token(
    *, parameters: int, embedding_parameters: int, layers: int, width: int, context: int
) -> float:
    """FLOPs of forward and backward per token: 6 (N - N_embedding) + 12 L W T.

    PaLM, appendix B (arXiv 2204.02311), as torchtitan counts it: embedding tables multiply nothing;
    recomputation and the sparsity of causal attention are not counted. `width` is heads x head dimension.
    """
    if min(parameters, layers, width, context) < 1 or not 0 <= embedding_parameters <= parameters:
        raise ValueError(
            "parameters, layers, width and context are positive, embeddings a part of parameters"
        )
    return 6.0 * (parameters - embedding_parameters) + 12.0 * layers * width * context


def mfu(*, flops_per_token: float, tokens_per_second: float, devices: int, peak_tflops: float) -> float:
    """Ratio of the model's FLOPs to the peak of all devices; 1 at the peak."""
    if min(flops_per_token, tokens_per_second, devices, peak_tflops) <= 0:
        raise ValueError("FLOPs, tokens per second, devices and peak are positive")
    return flops_per_token * tokens_per_second / (devices * peak_tflops * 1e12)


def without_peak(model_dtype: str, peak_dtype: str | None) -> str | None:
    """Return the reason why no utilisation can be stated, or None.

    A peak holds for one data type only; at 8 bits and fewer, part of a step runs at other rates, so a ratio
    to any single peak would be meaningless.
    """
    if peak_dtype is None:
        return "no_peak: the plan declares no peak_tflops"
    if _plain(model_dtype).startswith(QUARTER_PRECISION) or _plain(peak_dtype).startswith(QUARTER_PRECISION):
        return "fp8: matrix products at 8 bits and the rest of the step have different peaks"
    if _plain(model_dtype) != _plain(peak_dtype):
        return f"dtype: the step runs in {_plain(model_dtype)}, the declared peak is for {_plain(peak_dtype)}"
    return None


def _plain(dtype: str) -> str:
    name = dtype.lower().removeprefix("torch.")
    return {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32"}.get(name, name)
