"""Values of stack files that both clouds take, or refuse, alike."""

from hypothesis import strategies as st

WILD = {
    "layout.idle_gpus": st.sampled_from(
        [None, {}, {"minutes": 10, "grace_minutes": 5, "jobs": "stop"}, {"minutes": 9}, {"jobs": "kill"}]
    ),
    "data.checkpoints.in_bucket": st.sampled_from(["all", "kept", "none"]),
    "data.checkpoints.cool_after_days": st.sampled_from([None, 0, 1, 30, 31, 400]),
    "data.checkpoints.model_params_b": st.sampled_from([None, 0, 7, 70.6, 2000]),
    "data.checkpoints.interval_minutes": st.sampled_from([None, 0, 1, 30, 10_080]),
    "data.checkpoints.expire_days": st.sampled_from([0, 1, 30, 3653]),
}
