"""Checkpoints are kept by a score that Tune can find."""

import dataclasses
import math
from typing import Any

from rllib_impass.experiments.result_keys import number_at

CHECKPOINT_SCORE = "checkpoint_score"


@dataclasses.dataclass
class CheckpointScore:
    """Adds the score of a checkpoint to each result, as a callback of RLlib's.

    Tune looks for ``checkpoint_score_attribute`` among the keys at the top of a result
    only. It takes a checkpoint without that key for the best so far, so that a nested
    key keeps the newest checkpoints instead of the best.

    Attributes:
        key: what to judge by, with "/" between its levels.
        newest: what the newest result that has the key has there. Tune ranks NaN below
            all numbers.
    """

    key: str
    newest: float = math.nan

    def __call__(self, *, result: dict[str, Any], **kwargs: Any) -> None:
        """Is ``on_train_result``."""
        score = number_at(result, self.key)
        self.newest = self.newest if score is None else score
        result[CHECKPOINT_SCORE] = self.newest
