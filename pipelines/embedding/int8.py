"""Linear layers in 8-bit integers: weights by output channel once, activations by token as they come.

A token's own smallest and largest value decide how it is rounded, and products are summed as integers, which is exact:
so its result is the same whatever tokens are multiplied along with it, bit for bit (ARC-9).
Dettmers et al., LLM.int8() (NeurIPS 2022), quantise rows so; the offset that keeps one-sided outliers cheap is that of
Jacob et al., Quantization and Training of Neural Networks (CVPR 2018).
"""

from __future__ import annotations

import torch

_LEVELS = 255.0  # steps between the least and the greatest value of 8 bits
_LOWEST = -128.0
_WEIGHT_LEVELS = 127.0  # weights are symmetric: the value −128 is left out
_TINY = torch.finfo(torch.float32).tiny


class Scratch:
    """Memory that the layers of one forward pass share; made for its number of tokens and its widest layer.

    Without it each product would ask the system for pages of its own, which costs as much as the product.
    """

    def __init__(self, tokens: int, width: int) -> None:
        self._sums = torch.empty(tokens * width, dtype=torch.int32)
        self._levels = torch.empty(tokens * width, dtype=torch.int8)
        self._values = torch.empty(tokens * width)

    def sums(self, rows: int, columns: int) -> torch.Tensor:
        """Room for integer products, (rows, columns)."""
        return self._sums[: rows * columns].view(rows, columns)

    def levels(self, rows: int, columns: int) -> torch.Tensor:
        """Room for rounded activations, (rows, columns)."""
        return self._levels[: rows * columns].view(rows, columns)

    def values(self, rows: int, columns: int) -> torch.Tensor:
        """Room for activations before they are rounded, (rows, columns)."""
        return self._values[: rows * columns].view(rows, columns)


class Int8Linear:
    """y = x Wᵀ + b with W in 8 bits.

    With x ≈ low + step · (q + 128), q in −128 … 127, and W ≈ scale · V, V in −127 … 127:
    y ≈ step · scale · (q Vᵀ) + (low + 128 step) · scale · ΣV + b.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        """Take float weights (outputs, inputs) and a bias (outputs)."""
        weight = weight.detach().float()
        self._scale = (weight.abs().amax(dim=1) / _WEIGHT_LEVELS).clamp_(min=_TINY)
        rounded = (weight / self._scale[:, None]).round_()
        # By input, as products read it: made of a transposed view, products of few tokens take a tenth longer.
        self._weight = rounded.to(torch.int8).t().contiguous()
        self._row_sums = rounded.sum(dim=1) * self._scale
        self._bias = bias.detach().float().clone()
        self.outputs, self.inputs = weight.shape

    def __call__(self, values: torch.Tensor, scratch: Scratch, out: torch.Tensor) -> torch.Tensor:
        """The layer's result for tokens (n, inputs), written to `out` (n, outputs), float32."""
        levels, step, offset = _rounded(values, scratch)
        sums = torch._int_mm(levels, self._weight, out=scratch.sums(len(values), self.outputs))
        out.copy_(sums).mul_(self._scale)
        torch.addcmul(self._bias, out, step, out=out)
        return out.addcmul_(offset, self._row_sums)


def _rounded(values: torch.Tensor, scratch: Scratch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Each row in 8 bits: q int8 (n, width), step (n, 1) and offset (n, 1), values ≈ offset + step · q."""
    low = values.amin(dim=1, keepdim=True)
    step = (values.amax(dim=1, keepdim=True) - low).div_(_LEVELS).clamp_(min=_TINY)
    offset = low - step * _LOWEST
    scaled = torch.sub(values, offset, out=scratch.values(*values.shape)).mul_(step.reciprocal())
    return scratch.levels(*values.shape).copy_(scaled.round_().clamp_(_LOWEST, -_LOWEST - 1)), step, offset
