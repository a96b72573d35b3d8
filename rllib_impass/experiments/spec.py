"""From a tuned YAML file to a ``tune.Tuner``; strict, and nothing in it is executed.

The schema is that of RLlib's former command: ``name: {run, env, stop, config, ...}``
with a flat ``config``.
"""

import dataclasses
import difflib
import inspect
import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from ray import tune
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.tune.error import TuneError
from ray.tune.registry import get_trainable_cls

from rllib_impass.experiments.errors import UsageError

# The methods of AlgorithmConfig whose settings a file may name; callbacks are code.
BUILDER_METHODS = (
    "environment",
    "env_runners",
    "learners",
    "training",
    "evaluation",
    "reporting",
    "debugging",
    "fault_tolerance",
    "resources",
    "rl_module",
)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One entry of an experiment file.

    Attributes:
        name: the folder of its results.
        run: name of the algorithm, as Tune knows it.
        env: name of the environment.
        stop: result keys and the values to stop at.
        config: settings of the algorithm.
        num_samples: how often to repeat it.
        checkpoint_config: arguments of ``tune.CheckpointConfig``.
    """

    name: str
    run: str
    env: str
    stop: dict[str, float]
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    num_samples: int = 1
    checkpoint_config: dict[str, Any] = dataclasses.field(default_factory=dict)

    def algorithm_config(self) -> AlgorithmConfig:
        """The validated config; raises UsageError for a setting that does not exist."""
        try:
            config = get_trainable_cls(self.run).get_default_config()
        except TuneError:
            raise UsageError(f"{self.name}: run={self.run!r} is no algorithm") from None
        methods = _builder_methods(type(config))
        _refuse_unknown(self.config, set(methods), f"{self.name}: config")
        for name, value in self.config.items():
            getattr(config, methods[name])(**{name: value})
        config.environment(self.env)
        config.copy(copy_frozen=False).validate()
        return config

    def num_cpus(self) -> float:
        """What one trial asks Ray for."""
        config = self.algorithm_config()
        request = get_trainable_cls(self.run).default_resource_request(config)
        return request.required_resources.get("CPU", 0.0)

    def tuner(self, storage_path: str, callbacks: list[tune.Callback]) -> tune.Tuner:
        """The experiment as a Tune run."""
        return tune.Tuner(
            self.run,
            param_space=self.algorithm_config(),
            tune_config=tune.TuneConfig(num_samples=self.num_samples),
            run_config=tune.RunConfig(
                name=self.name,
                storage_path=storage_path,
                stop=self.stop,
                checkpoint_config=tune.CheckpointConfig(**self.checkpoint_config),
                callbacks=callbacks,
                verbose=0,
            ),
        )


def load_experiments(path: Path) -> list[Experiment]:
    """Reads every experiment of a YAML file; raises UsageError with what is wrong."""
    try:
        content = yaml.load(path.read_text(), Loader=_Loader)
    except (OSError, yaml.YAMLError) as error:
        raise UsageError(f"{path}: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict) or not content:
        raise UsageError(f"{path}: expected `name: {{run: ..., env: ..., ...}}`")
    return [_experiment(name, entry) for name, entry in content.items()]


def _experiment(name: Any, entry: Any) -> Experiment:
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name) or ".." in name:
        raise UsageError(f"{name!r} is no name for a folder of results")
    if not isinstance(entry, dict):
        raise UsageError(f"{name}: expected a mapping, got {entry!r}")
    fields = dataclasses.fields(Experiment)
    _refuse_unknown(entry, {f.name for f in fields} - {"name"}, name)
    for key in ("run", "env", "stop"):
        if not entry.get(key):
            raise UsageError(f"{name}: {key} is missing")
    _refuse_unknown(
        entry.get("checkpoint_config") or {},
        {f.name for f in dataclasses.fields(tune.CheckpointConfig)},
        f"{name}: checkpoint_config",
    )
    return Experiment(name=name, **entry)


def _builder_methods(config_class: type[AlgorithmConfig]) -> dict[str, str]:
    """Which builder method takes which setting.

    RLlib's ``update_from_dict`` sets whatever it is given; its builder methods do not.
    """
    methods: dict[str, str] = {}
    bases = reversed(config_class.__mro__)
    for base, method in itertools.product(bases, BUILDER_METHODS):
        if method in vars(base):
            parameters = inspect.signature(vars(base)[method]).parameters
            for name, parameter in parameters.items():
                if parameter.default is NotProvided:
                    methods[name] = method
    return methods


def _refuse_unknown(keys: Iterable[str], known: set[str], where: str) -> None:
    for key in keys:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise UsageError(f"{where} has no setting {key!r}{hint}")


class _Loader(yaml.SafeLoader):
    """YAML 1.1 reads ``1e-4`` as text; this reads it as the number it is."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {str(key) for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(
                None, None, f"{', '.join(twice)} is there twice", node.start_mark
            )
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d[\d_]*)(\.[\d_]*)?[eE][-+]?\d+$"),
    list("-+0123456789"),
)
