"""From the flat ``config`` of a file to an AlgorithmConfig."""

import dataclasses
import importlib
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.algorithms.registry import ALGORITHMS as RLLIB_ALGORITHMS
from ray.rllib.core.learner.learner import Learner
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.utils import force_list
from ray.tune.error import TuneError
from ray.tune.registry import ENV_CREATOR, _global_registry, get_trainable_cls
from ray.tune.search.variant_generator import generate_variants

import rllib_impass
from rllib_impass.experiments.class_paths import is_class_path, load_class
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.schema import contains_grid
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
CLASS_SETTINGS = {"env_runner_cls": EnvRunner, "learner_class": Learner}


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
        return load_class(run, Algorithm, "run")
    try:
        return get_trainable_cls(run)
    except (TuneError, ValueError):
        ours = {name for name in rllib_impass.__all__ if not name.endswith("Config")}
        hint = did_you_mean(run, {*RLLIB_ALGORITHMS, *ours})
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


def apply_settings(config: AlgorithmConfig, values: dict[str, Any]) -> None:
    """Gives each setting to its builder method; values may have grids in them."""
    methods = builder_methods(type(config))
    refuse_unknown(values, methods, "config")
    _check_evaluation_config(values.get("evaluation_config"), methods)
    for name, value in values.items():
        value = _with_classes(name, value)
        if not contains_grid(value):
            _build(config, methods[name], name, value)
            continue
        for _, variant in generate_variants({name: value}):
            _build(config, methods[name], name, variant[name])
        try:
            _build(config, methods[name], name, value)
        except UsageError:
            # A builder method that checks types; Tune resolves the attribute as well.
            setattr(config, name, value)


def add_callback(
    config: AlgorithmConfig, event: str, function: Callable[..., None]
) -> None:
    """Has a function called at an event of RLlib's, after those that are there."""
    others = force_list(getattr(config, f"callbacks_{event}"))
    config.callbacks(**{event: [*others, function]})


def resolve_env(env: Any) -> Any:
    """An environment, or a grid of them, in the terms that RLlib's actors know.

    Classes instead of their paths, and plain ids for ``module:id``, whose module is
    trusted, and therefore imported here and in the actors.
    """
    if isinstance(env, dict):
        return {key: list(map(resolve_env, values)) for key, values in env.items()}
    if is_class_path(env):
        return load_class(env, (gym.Env, MultiAgentEnv), "env")
    if isinstance(env, str) and ":" in env:
        module, _, env = env.partition(":")
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise UsageError(f"env={module}:{env}: {error}") from None
    return env


def variants(config: AlgorithmConfig) -> Iterator[AlgorithmConfig]:
    """The config of every trial: each combination of what is under ``grid_search``."""
    for _, variant in generate_variants(config.to_dict()):
        yield type(config).from_dict(variant)


def validate(config: AlgorithmConfig) -> None:
    """Checks a config without grids as building the algorithm would."""
    if config.seed is not None and not isinstance(config.seed, int):
        raise UsageError(f"config.seed must be a whole number, got {config.seed!r}")
    _try_env(config)
    try:
        config.copy(copy_frozen=False).validate()
        config.algo_class.default_resource_request(config)
    except Exception as error:
        text = str(error).strip() or type(error).__name__
        raise UsageError(f"config: {text.splitlines()[0]}") from None


def refuse_unknown_model_settings(config: AlgorithmConfig) -> None:
    """RLlib's own models ignore settings that they do not know."""
    fields = {field.name for field in dataclasses.fields(DefaultModelConfig)}
    known = fields | set(config._model_config_auto_includes)
    refuse_unknown(config.model_config, known, "config.model_config")


def _build(config: AlgorithmConfig, method: str, name: str, value: Any) -> None:
    if name == "model_config" and not isinstance(value, dict):
        raise UsageError(f"config.model_config must be a mapping, got {value!r}")
    try:
        getattr(config, method)(**{name: value})
    except Exception as error:
        raise UsageError(f"config.{name}={value!r}: {error}") from None


def _with_classes(name: str, value: Any) -> Any:
    if name not in CLASS_SETTINGS:
        return value
    if isinstance(value, dict):
        return {
            key: [_with_classes(name, inner) for inner in values]
            for key, values in value.items()
        }
    if not is_class_path(value):
        raise UsageError(f"config.{name} must be a class path, got {value!r}")
    return load_class(value, CLASS_SETTINGS[name], f"config.{name}")


def _check_evaluation_config(overrides: Any, methods: dict[str, str]) -> None:
    if overrides is None:
        return
    if not isinstance(overrides, dict):
        raise UsageError(f"config.evaluation_config must be a mapping: {overrides!r}")
    # RLlib sets whatever it is given here, an env or a class of its own included.
    allowed = set(methods) - {"env", "evaluation_config", *CLASS_SETTINGS}
    refuse_unknown(overrides, allowed, "config.evaluation_config")


def _try_env(config: AlgorithmConfig) -> None:
    """Makes one step, so that a bad environment is known before Ray starts."""
    env = config.env
    if env is None:
        # A Python file may train from recorded data.
        return
    if isinstance(env, str) and not _global_registry.contains(ENV_CREATOR, env):
        try:
            gym.spec(env)
        except (gym.error.Error, ImportError) as error:
            # Tune knows ours without the prefix.
            known = {name.removeprefix("rllib_impass/") for name in gym.registry}
            hint = did_you_mean(env, known)
            cause = "" if hint else f": {error}"
            raise UsageError(f"env={env!r} does not exist{cause}{hint}") from None
    tried = "be created"
    try:
        _, creator = Algorithm._get_env_id_and_creator(env, config)
        made = creator(EnvContext(config.env_config, worker_index=0))
        if not isinstance(made, MultiAgentEnv):
            tried = "be reset"
            made.reset(seed=0)
            tried = "make a step"
            made.step(made.action_space.sample())
        made.close()
    except Exception as error:
        cause = error.__cause__ or error.__context__ or error
        raise UsageError(
            f"env={env!r} with env_config={config.env_config} cannot {tried}: {cause}"
        ) from None
