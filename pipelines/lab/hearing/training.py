"""Training one head: a small network over the frozen encoder's states, its probabilities then made true by one number.

A head that is to be judged on a manner of speaking is trained on all the others. Its temperature is the one at which
what such heads say of the manners that they did not see is likeliest.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import nn
from torch.nn import functional

from lab.hearing.labelled import LabelledTurn
from weft.lessons.hearing import ClassifierHead, normalised

_DIRECTIONS = 96  # directions of the states in which tokens differ most: of words there are too many to learn each
_NETWORKS, _WIDTH, _QUESTIONS, _HIDDEN = 3, 32, 4, 32
_SHARP, _DROPPED, _SMOOTHED = 3.0, 0.3, 0.03
_BATCH, _EPOCHS, _RATE, _DECAY = 32, 16, 2e-3, 0.02
_GROUPS = 6  # of manners
_SAMPLE = 1500  # examples whose tokens tell these directions


class _Network(nn.Module):
    def __init__(self, facts: int, classes: int) -> None:
        super().__init__()
        self.read = nn.Linear(_DIRECTIONS, _WIDTH)
        self.questions = nn.Parameter(torch.randn(3, _QUESTIONS, _WIDTH) * 0.1)
        self.hidden = nn.Linear(3 * _QUESTIONS * _WIDTH + facts, _HIDDEN)
        self.out = nn.Linear(_HIDDEN, classes)
        self.drop = nn.Dropout(_DROPPED)

    def forward(
        self, states: Sequence[torch.Tensor], masks: Sequence[torch.Tensor], facts: torch.Tensor
    ) -> torch.Tensor:
        parts = []
        for values, mask, questions in zip(states, masks, self.questions, strict=True):
            read = torch.tanh(self.read(self.drop(values)))
            scores = _SHARP * torch.einsum("bnw,qw->bqn", read, questions).masked_fill(~mask[:, None], -1e4)
            shares = scores.softmax(-1) * mask.any(1)[:, None, None]
            parts.append(torch.einsum("bqn,bnw->bqw", shares, read).flatten(1))
        hidden = torch.relu(self.hidden(self.drop(torch.cat([*parts, facts], 1))))
        logits: torch.Tensor = self.out(self.drop(hidden))
        return logits


class TrainingSet:
    """Examples, with the states of their texts in the directions in which tokens differ most."""

    def __init__(self, examples: Sequence[LabelledTurn], seed: int) -> None:
        self.examples = examples
        self.labels = np.array([each.label for each in examples])
        self.classes = int(self.labels.max()) + 1
        facts = np.array([each.facts for each in examples])
        self.mean, self.scale = facts.mean(axis=0), facts.std(axis=0) + 1e-6
        self._facts = torch.tensor((facts - self.mean) / self.scale, dtype=torch.float32)
        drawn = random.Random(seed)  # noqa: S311 - it draws what is looked at
        some = drawn.sample(list(examples), min(_SAMPLE, len(examples)))
        tokens = np.concatenate([normalised(text.states) for each in some for text in each.texts])
        self.centre = tokens.mean(axis=0)
        _, directions = np.linalg.eigh(np.cov(tokens, rowvar=False))
        self.directions = np.ascontiguousarray(directions[:, ::-1][:, :_DIRECTIONS])
        reduced: dict[int, torch.Tensor] = {}
        for text in (text for each in examples for text in each.texts):
            if id(text) not in reduced:
                values = (normalised(text.states) - self.centre) @ self.directions
                reduced[id(text)] = torch.tensor(values, dtype=torch.float32)
        self._states = [[reduced[id(text)] for text in each.texts] for each in examples]

    def batches(
        self, places: Sequence[int]
    ) -> Iterator[tuple[Sequence[int], Sequence[torch.Tensor], Sequence[torch.Tensor], torch.Tensor]]:
        """The examples at some places, a batch at a time: places, states and masks of the three texts, and facts."""
        for at in range(0, len(places), _BATCH):
            some = places[at : at + _BATCH]
            states, masks = [], []
            for part in range(3):
                own = [self._states[place][part] for place in some]
                longest = max(1, *map(len, own))
                padded = torch.zeros(len(some), longest, _DIRECTIONS)
                mask = torch.zeros(len(some), longest, dtype=torch.bool)
                for row, each in enumerate(own):
                    padded[row, : len(each)], mask[row, : len(each)] = each, True
                states.append(padded)
                masks.append(mask)
            yield some, states, masks, self._facts[torch.tensor(some)]


def trained(given: TrainingSet, places: Sequence[int], seed: int) -> dict[str, np.ndarray]:
    """The weights of a head that saw the examples at some places, with a temperature of 1."""
    networks = [_one_trained(given, places, seed + at) for at in range(_NETWORKS)]
    weights = {name: np.stack([each[name] for each in networks]) for name in networks[0]}
    return weights | {"facts_mean": given.mean, "facts_scale": given.scale, "t": np.ones(1)}


def _one_trained(given: TrainingSet, places: Sequence[int], seed: int) -> Mapping[str, np.ndarray]:
    torch.manual_seed(seed)
    rng, order = random.Random(seed), list(places)  # noqa: S311 - it shuffles what is learned
    network = _Network(given._facts.shape[1], given.classes)
    steps = _EPOCHS * (len(order) // _BATCH + 1)
    optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=_DECAY)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=steps + 1)
    labels = torch.tensor(given.labels)
    for _ in range(_EPOCHS):
        rng.shuffle(order)
        for some, states, masks, facts in given.batches(order):
            loss = functional.cross_entropy(
                network(states, masks, facts), labels[torch.tensor(some)], label_smoothing=_SMOOTHED
            )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            rate.step()
    return _exported(network.eval(), given)


def _exported(network: _Network, given: TrainingSet) -> Mapping[str, np.ndarray]:
    own = {name: values.detach().numpy() for name, values in network.named_parameters()}
    read = own["read.weight"] @ given.directions.T
    return {
        "w": read,
        "b": own["read.bias"] - read @ given.centre,
        "q": own["questions"],
        "u": own["hidden.weight"],
        "c": own["hidden.bias"],
        "v": own["out.weight"],
        "d": own["out.bias"],
    }


def shares_of(given: TrainingSet, places: Sequence[int], weights: Mapping[str, np.ndarray]) -> np.ndarray:
    """What a head says of the examples at some places: probabilities, float32 (examples, classes)."""
    head = ClassifierHead(weights)
    return np.stack([head(given.examples[place].texts, given.examples[place].facts) for place in places])


def out_of_manner(given: TrainingSet, seed: int) -> tuple[np.ndarray, float]:
    """What is said of each example by a head that saw no other one of its manner, and the temperature for it."""
    shares = np.zeros((len(given.examples), given.classes), dtype=np.float32)
    of = np.array([each.manner for each in given.examples])
    manners = sorted(set(of.tolist()))
    for first in range(_GROUPS):  # a few manners are kept out together
        out = np.isin(of, manners[first::_GROUPS])
        places = np.flatnonzero(out).tolist()
        shares[places] = shares_of(given, places, trained(given, np.flatnonzero(~out).tolist(), seed))
    logits = np.log(shares + 1e-12)
    own = np.arange(len(shares))

    def surprise(temperature: float) -> float:
        scaled = logits / temperature
        return float((np.logaddexp.reduce(scaled, axis=1) - scaled[own, given.labels]).mean())

    temperature = float(minimize_scalar(surprise, bounds=(0.3, 5.0), method="bounded").x)
    sharpened = np.exp(logits / temperature)
    return sharpened / sharpened.sum(axis=1, keepdims=True), temperature
