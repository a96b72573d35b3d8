"""From the flat ``config`` of a file to an AlgorithmConfig."""

import dataclasses
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.algorithms.registry import ALGORITHMS as RLLIB_ALGORITHMS
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.env_context import EnvContext
from ray.tune.error import TuneError
from ray.tune.registry import ENV_CREATOR, _global_registry, get_trainable_cls
from ray.tune.search.variant_generator import generate_variants

import rllib_impass
from rllib_impass.experiments.class_paths import is_class_path, load_class
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.suggestions import did_you_mean, refuse_unknown

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
CLASS_SETTINGS = ("env_runner_cls", "learner_class")


def algorithm_class(run: str, base: AlgorithmConfig | None = None) -> type[Algorithm]:
    """The algorithm behind a name that Tune knows, or behind a class path.

    Args:
        run: the name or path.
        base: the config of a Python file, which brings its algorithm along.
    """
    if base is not None and isinstance(base.algo_class, type):
        if run != base.algo_class.__name__:
            raise UsageError(
                f"run={run!r} is not what the Python file's config is for: "
                f"{base.algo_class.__name__}"
            )
        return base.algo_class
    if is_class_path(run):
        return load_class(run, "run")
    try:
        return get_trainable_cls(run)
    except (TuneError, ValueError):
        hint = did_you_mean(run, {*RLLIB_ALGORITHMS, *rllib_impass.__all__})
        raise UsageError(f"run={run!r} is no algorithm{hint}") from None


def builder_methods(config_class: type[AlgorithmConfig]) -> dict[str, str]:
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


def apply_settings(config: AlgorithmConfig, settings: dict[str, Any]) -> None:
    """Gives each setting to its builder method; values may be ``grid_search``."""
    methods = builder_methods(type(config))
    refuse_unknown(settings, methods, "config")
    for name, value in settings.items():
        if name in CLASS_SETTINGS and is_class_path(value):
            value = load_class(value, f"config.{name}")
        try:
            getattr(config, methods[name])(**{name: value})
        except Exception as error:
            raise UsageError(f"config.{name}={value!r}: {error}") from None


def resolve_env(env: Any) -> Any:
    """An environment, or a grid of them, with classes in place of their paths.

    RLlib's actors know names and classes, but no class paths.
    """
    if isinstance(env, dict):
        return {key: list(map(resolve_env, values)) for key, values in env.items()}
    return load_class(env, "env") if is_class_path(env) else env


def variants(config: AlgorithmConfig) -> Iterator[AlgorithmConfig]:
    """The config of every trial: each combination of what is under ``grid_search``."""
    for _, variant in generate_variants(config.to_dict()):
        yield type(config).from_dict(variant)


def validate(config: AlgorithmConfig) -> None:
    """Checks a config without grids as building the algorithm would."""
    _refuse_unknown_model_settings(config)
    _try_env(config)
    try:
        config.copy(copy_frozen=False).validate()
    except Exception as error:
        raise UsageError(f"config: {str(error).strip().splitlines()[0]}") from None


def _refuse_unknown_model_settings(config: AlgorithmConfig) -> None:
    fields = {field.name for field in dataclasses.fields(DefaultModelConfig)}
    known = fields | set(config._model_config_auto_includes)
    refuse_unknown(config.model_config, known, "config.model_config")


def _try_env(config: AlgorithmConfig) -> None:
    """Makes one step, so that a bad environment is known before Ray starts."""
    env = config.env
    if isinstance(env, str) and not _global_registry.contains(ENV_CREATOR, env):
        try:
            gym.spec(env)
        except (gym.error.Error, ImportError) as error:
            hint = did_you_mean(env, {*gym.registry, "Striker-v0"})
            cause = "" if hint else f": {error}"
            raise UsageError(f"env={env!r} does not exist{cause}{hint}") from None
    did = "be created"
    try:
        _, creator = Algorithm._get_env_id_and_creator(env, config)
        made = creator(EnvContext(config.env_config, worker_index=0))
        did = "be reset"
        made.reset(seed=0)
        did = "make a step"
        made.step(made.action_space.sample())
        made.close()
    except Exception as error:
        cause = error.__cause__ or error.__context__ or error
        raise UsageError(
            f"env={env!r} with env_config={config.env_config} cannot {did}: {cause}"
        ) from None
