"""Schedulers of Tune: they stop or change trials by how those do."""

import inspect
import os

from ray.tune.schedulers import SCHEDULER_IMPORT, TrialScheduler, create_scheduler

from rllib_impass.experiments.errors import UsageError, one_line
from rllib_impass.experiments.experiment import Experiment
from rllib_impass.experiments.result_keys import RETURN
from rllib_impass.experiments.suggestions import did_you_mean, refuse_unknown

# As people call it, and as Tune does.
_NAMES = {"asha": "async_hyperband"}
# A result before the end of a first episode has no return.
_DEFAULTS = {"metric": RETURN, "mode": "max", "require_attrs": False}


def wait_for_returns() -> None:
    """Has Tune wait for a first episode to end, instead of failing its trial."""
    os.environ.setdefault("TUNE_DISABLE_STRICT_METRIC_CHECKING", "1")


def make_scheduler(experiment: Experiment) -> TrialScheduler:
    """The experiment's Tune scheduler, which compares training returns."""
    name, arguments = experiment.scheduler, dict(experiment.scheduler_config)
    name = _NAMES.get(name, name)
    if name not in SCHEDULER_IMPORT:
        known = sorted({*SCHEDULER_IMPORT, *_NAMES})
        hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        raise UsageError(f"scheduler={name!r} is none of Tune's{hint}")
    try:
        scheduler = SCHEDULER_IMPORT[name]
        if inspect.isfunction(scheduler):
            scheduler = scheduler()
        # Tune's `create_scheduler` leaves out, in silence, what it does not know.
        known = inspect.signature(scheduler).parameters
        refuse_unknown(arguments, known, f"scheduler_config of {name}")
        defaults = {key: _DEFAULTS[key] for key in known if key in _DEFAULTS}
        return create_scheduler(name, **defaults | arguments)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(f"scheduler {name}: {one_line(error)}") from None
