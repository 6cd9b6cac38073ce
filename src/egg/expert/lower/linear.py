"""Operators that stay whole because vendor libraries do them well."""

from __future__ import annotations

ANCHORS = frozenset(
    {
        "aten.linear.default",
        "aten.matmul.default",
        "aten.mm.default",
        "aten.bmm.default",
        "aten.mv.default",
        "aten.dot.default",
        "aten.addmm.default",
        "aten.addmv.default",
        "aten.baddbmm.default",
        "aten.einsum.default",
        "aten.bilinear.default",
        "aten.outer.default",
        "aten.conv1d.default",
        "aten.conv1d.padding",
        "aten.conv2d.default",
        "aten.conv2d.padding",
        "aten.conv3d.default",
        "aten.conv3d.padding",
        "aten.conv_transpose1d.default",
        "aten.conv_transpose2d.input",
        "aten.conv_transpose3d.input",
        "aten.convolution.default",
        "aten.scaled_dot_product_attention.default",
        "aten.lstm.input",
        "aten.gru.input",
        "aten.rnn_tanh.input",
        "aten.rnn_relu.input",
    }
)
"""By overload name."""
