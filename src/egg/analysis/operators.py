"""What kind of work each ATen operator is, and what one element of it costs."""

from __future__ import annotations

from typing import Literal

OpClass = Literal[
    "view", "copy", "factory", "random", "pointwise", "reduction", "matmul", "conv", "attention", "recurrent",
    "norm", "softmax", "pool", "scan", "gather", "sort", "loss", "resample", "other",
]  # fmt: skip
"""view: no data moves. copy: data moves unchanged. gather: reads or writes where an index says."""

_NAMES: dict[OpClass, str] = {
    "view": """
        alias as_strided broadcast_tensors broadcast_to chunk detach diagonal expand expand_as flatten lift_fresh
        movedim narrow permute real select slice split split_with_sizes squeeze swapaxes swapdims t tensor_split
        transpose unbind unflatten unfold unsqueeze view view_as _unsafe_view numpy_T mT adjoint
    """,
    "copy": """
        _to_copy cat clone contiguous copy concat concatenate constant_pad_nd flip hstack pad pixel_shuffle
        pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d repeat repeat_interleave replication_pad1d
        replication_pad2d replication_pad3d reshape roll rot90 slice_scatter select_scatter diagonal_scatter stack
        tile to lift_fresh_copy tril triu vstack channel_shuffle native_channel_shuffle im2col col2im meshgrid
    """,
    "factory": """
        arange empty empty_like eye full full_like linspace new_empty new_full new_ones new_zeros ones ones_like
        scalar_tensor zeros zeros_like empty_strided tril_indices triu_indices one_hot
    """,
    "random": """
        bernoulli dropout multinomial native_dropout normal normal_functional rand rand_like randint randn randn_like
        randperm uniform alpha_dropout feature_dropout exponential
    """,
    "reduction": """
        all amax amin aminmax any argmax argmin count_nonzero linalg_vector_norm logsumexp max mean median min nanmean
        nansum norm prod std std_mean sum trace var var_mean frobenius_norm mode
    """,
    "matmul": """
        addbmm addmm addmv addr baddbmm bilinear bmm chain_matmul dot einsum ger inner kron linalg_multi_dot linear
        matmul mm mv outer tensordot vdot cdist _cdist_forward
    """,
    "conv": """
        conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution _convolution conv_tbc
    """,
    "attention": "scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu",
    "recurrent": "gru lstm rnn_relu rnn_tanh",
    "norm": """
        batch_norm group_norm instance_norm layer_norm native_batch_norm native_group_norm native_layer_norm
        local_response_norm rms_norm _fused_rms_norm _native_batch_norm_legit _native_batch_norm_legit_functional
        _native_batch_norm_legit_no_training _batch_norm_with_update _batch_norm_with_update_functional
        _batch_norm_no_update renorm
    """,
    "softmax": "_log_softmax _softmax log_softmax softmax softmin _safe_softmax",
    "pool": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
        adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d
        fractional_max_pool2d lp_pool1d lp_pool2d max_pool1d max_pool2d max_pool3d max_pool1d_with_indices
        max_pool2d_with_indices max_pool3d_with_indices
    """,
    "scan": "cummax cummin cumprod cumsum logcumsumexp diff",
    "gather": """
        embedding embedding_bag _embedding_bag gather index index_add index_copy index_fill index_put index_select
        masked_scatter masked_select scatter scatter_add scatter_reduce take take_along_dim nonzero unique bincount
        histc
    """,
    "sort": "argsort bucketize kthvalue msort searchsorted sort topk",
    "loss": """
        binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy_loss ctc_loss
        hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss
        multilabel_margin_loss nll_loss nll_loss2d nll_loss_nd nll_loss_forward poisson_nll_loss smooth_l1_loss
        soft_margin_loss triplet_margin_loss cosine_similarity pairwise_distance pdist
    """,
    "resample": """
        affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_3d upsample_bicubic2d upsample_bilinear2d
        upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
    """,
    "pointwise": """
        abs acos acosh add addcdiv addcmul asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not
        bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min clip copysign cos cosh deg2rad
        digamma div divide elu eq erf erfc erfinv exp exp2 expm1 fill float_power floor floor_divide fmax fmin fmod frac
        ge gelu glu greater greater_equal gt hardshrink hardsigmoid hardswish hardtanh heaviside hypot isclose isfinite
        isinf isnan ldexp le leaky_relu lerp less less_equal lgamma log log10 log1p log2 log_sigmoid logaddexp
        logaddexp2 logical_and logical_not logical_or logical_xor logit lt masked_fill maximum minimum mish mul multiply
        nan_to_num ne neg negative not_equal pow prelu rad2deg reciprocal relu relu6 remainder round rrelu rsqrt rsub
        selu sgn sigmoid sign signbit silu sin sinc sinh softplus softshrink softsign sqrt square sub subtract tan tanh
        tanhshrink threshold true_divide trunc where xlogy
    """,
}

CLASS_OF: dict[str, OpClass] = {name: kind for kind, names in _NAMES.items() for name in names.split()}
"""Class by base name: `aten.add.Tensor` is `add`."""

POINTWISE_FLOPS: dict[str, int] = {
    "div": 4, "divide": 4, "true_divide": 4, "reciprocal": 4, "sqrt": 4, "rsqrt": 4, "remainder": 4, "fmod": 4,
    "exp": 8, "exp2": 8, "expm1": 10, "log": 8, "log2": 8, "log10": 8, "log1p": 10, "sin": 10, "cos": 10, "tan": 16,
    "sigmoid": 12, "tanh": 14, "erf": 14, "erfc": 14, "pow": 16, "float_power": 16, "atan2": 16, "atan": 12,
    "gelu": 18, "silu": 13, "mish": 32, "softplus": 18, "elu": 11, "selu": 11, "celu": 11, "log_sigmoid": 18,
    "glu": 13, "logaddexp": 20, "hardswish": 4, "hardsigmoid": 3, "clamp": 2, "hardtanh": 2, "leaky_relu": 2, "lerp": 3,
    "addcmul": 2, "addcdiv": 5, "xlogy": 9, "lgamma": 24, "erfinv": 24,
}  # fmt: skip
"""Floating operations an element beyond one: what a vectorised polynomial or a division takes, rounded."""

REDUCTION_FLOPS: dict[str, int] = {
    "linalg_vector_norm": 2, "logsumexp": 10, "var": 4, "std": 4, "var_mean": 4, "std_mean": 4, "norm": 2, "aminmax": 2,
    "frobenius_norm": 2,
}  # fmt: skip
"""Floating operations an input element beyond one."""

EXP_FLOPS = POINTWISE_FLOPS["exp"]

LIBRARY: frozenset[OpClass] = frozenset({"matmul", "conv", "attention", "recurrent"})
"""Classes that a vendor library computes best, with fusion around them."""


def base_name(op: str) -> str:
    """Returns the operator without namespace and overload: `add` for `aten.add.Tensor`."""
    parts = op.split(".")
    return parts[1] if len(parts) > 1 else op


def class_of(op: str) -> OpClass:
    """Returns the class of an operator; `other` for one that is not in the table.

    `max` and `min` of two tensors are pointwise although they share a name with the reductions.
    """
    name = base_name(op)
    if name in ("max", "min") and op.endswith(".other"):
        return "pointwise"
    return CLASS_OF.get(name, "other")
