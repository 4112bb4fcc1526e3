"""Linear layers in 8-bit integers: weights by output channel once, activations by token as they come.

A token's own smallest and largest value decide how it is rounded, and products are summed as integers, which is exact:
so its result is the same whatever tokens are multiplied along with it, bit for bit (ARC-9).

It is also the same integer on every processor. Without VNNI, x86 adds two neighbouring products in 16 bits, and cuts
off what does not fit. Weights are therefore rounded so coarsely that two neighbours never sum above 128 in size:
255 · 128 fits.

Dettmers et al., LLM.int8() (NeurIPS 2022), quantise rows so; the offset that keeps one-sided outliers cheap is that of
Jacob et al., Quantization and Training of Neural Networks (CVPR 2018).
"""

from __future__ import annotations

import platform

import torch
from torch.nn import functional

_LEVELS = 255.0  # steps between the least and the greatest value of 8 bits
_WEIGHT_LEVELS = 127.0  # weights are symmetric: the value −128 is left out
_PAIR_LEVELS = 127.9999  # of two neighbours' sizes: below 128 by more than division errs, so rounded they make 128
_TINY = torch.finfo(torch.float32).tiny
_X86 = platform.machine().lower() in {"x86_64", "amd64"}


class Scratch:
    """Memory that the layers of one forward pass share; made for its number of tokens and its widest layer.

    Without it each product would ask the system for pages of its own, which costs as much as the product.
    """

    def __init__(self, tokens: int, width: int) -> None:
        self._levels = torch.empty(tokens * width, dtype=torch.uint8)
        self._values = torch.empty(tokens * width)

    def levels(self, rows: int, columns: int) -> torch.Tensor:
        """Room for rounded activations, (rows, columns)."""
        return self._levels[: rows * columns].view(rows, columns)

    def values(self, rows: int, columns: int) -> torch.Tensor:
        """Room for activations before they are rounded, (rows, columns)."""
        return self._values[: rows * columns].view(rows, columns)


class Int8Linear:
    """y = x Wᵀ + b with W in 8 bits.

    With x ≈ low + step · q, q in 0 … 255, and W ≈ scale · V, V in −127 … 127:
    y ≈ step · scale · (q Vᵀ) + low · scale · ΣV + b.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor, *, x86: bool = _X86) -> None:
        """Take float weights (outputs, inputs) and a bias (outputs).

        Args:
            x86: Multiply integers, as such processors do fast; elsewhere the same sums are made of 64-bit floats.
        """
        weight = weight.detach().float()
        self._scale = _scale(weight)
        rounded = (weight / self._scale[:, None]).round_()
        self._weight = _packed(rounded) if x86 else rounded.double().t()
        self._x86 = x86
        self._zeros = torch.zeros(len(weight), dtype=torch.long)
        self._row_sums = rounded.sum(dim=1) * self._scale
        self._bias = bias.detach().float().clone()
        self.outputs, self.inputs = weight.shape

    def __call__(self, values: torch.Tensor, scratch: Scratch, out: torch.Tensor) -> torch.Tensor:
        """The layer's result for tokens (n, inputs), written to `out` (n, outputs), float32."""
        levels, step, low = _rounded(values, scratch)
        torch.addcmul(self._bias, self._products(levels), step, out=out)
        return out.addcmul_(low, self._row_sums)

    def _products(self, levels: torch.Tensor) -> torch.Tensor:
        """Scale · (q Vᵀ), float32 (n, outputs)."""
        if not self._x86:
            return (levels.double() @ self._weight).float().mul_(self._scale)
        products: torch.Tensor = torch.ops.onednn.qlinear_pointwise(
            levels, 1.0, 0, self._weight, self._scale, self._zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return products


def _scale(weight: torch.Tensor) -> torch.Tensor:
    """What a step of each output's weights stands for: as little as their bound and that of neighbours allow."""
    sizes = functional.pad(weight.abs(), (0, weight.shape[1] % 2))
    pairs = sizes.view(len(sizes), -1, 2).sum(dim=2)
    return torch.maximum(sizes.amax(dim=1) / _WEIGHT_LEVELS, pairs.amax(dim=1) / _PAIR_LEVELS).clamp_(min=_TINY)


def _packed(rounded: torch.Tensor) -> torch.Tensor:
    """Integer weights in the order in which the processor at hand multiplies them."""
    packed: torch.Tensor = torch.ops.onednn.qlinear_prepack(rounded.to(torch.int8).contiguous(), None)
    return packed


def _rounded(values: torch.Tensor, scratch: Scratch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Each row in 8 bits: q uint8 (n, width), step (n, 1) and low (n, 1), values ≈ low + step · q."""
    low = values.amin(dim=1, keepdim=True)
    step = (values.amax(dim=1, keepdim=True) - low).div_(_LEVELS).clamp_(min=_TINY)
    scaled = torch.sub(values, low, out=scratch.values(*values.shape)).mul_(step.reciprocal())
    return scratch.levels(*values.shape).copy_(scaled.round_().clamp_(0.0, _LEVELS)), step, low
