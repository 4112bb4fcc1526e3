"""Updaters as Ray actors: the partitions of the topic shared among them, each in one place at a time (FBK-4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.feedback.settings import FeedbackSettings
from pipelines.feedback.updater import Progress, Updater, keep_up
from pipelines.runtime import cluster
from pipelines.runtime.kafka import KafkaSource
from pipelines.runtime.settings import ClusterSettings, KafkaSettings
