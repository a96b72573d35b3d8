"""Keeps Ray's and gymnasium's known noise away and our own few lines visible."""

import logging
import warnings

# Logger -> part of a message that tells a user of this package nothing: RLlib prints
# the first two for every algorithm and every module that it builds itself.
_NOISE = {
    "ray._common.deprecation": "RLModule(config=",
    "ray.rllib.algorithms.algorithm_config": "on the new API stack",
    "ray.tune.utils.util": "gputil",
    "ray.tune.trainable.trainable": "Trainable.setup took",
}


class _Drop(logging.Filter):
    """Drops records that contain a text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def filter(self, record: logging.LogRecord) -> bool:
        return self._text not in record.getMessage()


class _FallbackHandler(logging.StreamHandler):
    """Writes to stderr as long as the application has configured no logging."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            super().emit(record)


def configure_logging() -> None:
    """Called once, on import, in every process that uses this package."""
    for name, text in _NOISE.items():
        logging.getLogger(name).addFilter(_Drop(text))
    # RLlib registers each env under this one name, every time it makes one.
    warnings.filterwarnings("ignore", message=".*rllib-single-agent-env-v0")
    logger = logging.getLogger("rllib_impass")
    logger.setLevel(logging.INFO)
    handler = _FallbackHandler()
    handler.setFormatter(logging.Formatter("rllib_impass: %(message)s"))
    logger.addHandler(handler)
