"""A Weights & Biases report of tracked runs, made with the package wandb-workspaces.

Its panels read the project whenever somebody looks: runs that come later show up too.
"""

import collections
import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_impass.reports.errors import ReportError

if TYPE_CHECKING:
    import wandb_workspaces.reports.v2 as wr

# What a tracked trial leaves in its folder, and what it says of itself there and in
# the config of its W&B run.
RUN_FILE = "wandb_run.json"
ENV, ALGORITHM, NUM_ACTORS = "env_id", "exp_name", "num_env_runners"

STEPS, SECONDS = "global_step", "charts/time_s"
EVALUATED, TRAINED = "charts/eval_return", "charts/episodic_return"
AXES = {STEPS: "env steps", SECONDS: "seconds of training"}
LAG = "learners/default_policy/policy_lag_mean"
QUEUE = "learners/__all_modules__/queue_depth"

_HALF, _WHOLE = 12, 24
_HOW_TO_READ = (
    "Curves are means over seeds, bands one standard error. *Evaluated* returns are of "
    "the deterministic policy on seeds of their own, and are what counts; *training* "
    "returns are with exploration."
)


@dataclasses.dataclass(frozen=True)
class TrackedRun:
    """What must be known of a run to give it a place.

    Attributes:
        env: the environment's name.
        algorithm: the algorithm's.
        num_actors: how many actors sampled.
    """

    env: str
    algorithm: str
    num_actors: int


def build_report(path: str, runs: Sequence[TrackedRun]) -> "wr.Report":
    """The report, not published yet. Touches no network.

    Args:
        path: ENTITY/PROJECT.
        runs: what the project holds, in the order that environments and algorithms
            shall have.

    Raises:
        ReportError: if there is nothing to report, or the package is missing.
    """
    entity, project = split_path(path)
    if not runs:
        raise ReportError(f"{path} has no runs that were logged with --wandb")
    wr = _workspaces()
    envs = dict.fromkeys(run.env for run in runs)
    return wr.Report(
        entity=entity,
        project=project,
        title=f"{project}: {', '.join(envs)}"[:128],
        description="Written by rllib report.",
        width="fluid",
        blocks=[
            *_summary(runs),
            *(block for env in envs for block in _env_section(env, runs)),
            *_actor_sections(runs),
            *_speed_section(runs),
            *_settings_section(runs),
        ],
    )


def split_path(path: str) -> tuple[str, str]:
    """Entity and project.

    Raises:
        ReportError: if it is not one of each.
    """
    entity, _, project = path.partition("/")
    if not (entity and project) or "/" in project:
        raise ReportError(f"--wandb {path}: expected ENTITY/PROJECT")
    return entity, project


def tracked_runs(folders: Iterable[Path]) -> list[TrackedRun]:
    """The runs in these folders that were logged with ``--wandb``."""
    files = (file for folder in folders for file in sorted(folder.rglob(RUN_FILE)))
    return list(_known(json.loads(file.read_text()) for file in files))


def project_runs(path: str) -> list[TrackedRun]:
    """The runs of a project, asked of W&B."""
    split_path(path)
    _workspaces()
    import wandb

    try:
        return list(_known(run.config for run in wandb.Api().runs(path)))
    except (wandb.Error, ValueError) as error:
        raise ReportError(f"--wandb {path}: {error}") from None


def publish(report: "wr.Report") -> str:
    """Saves the report on W&B and returns its address."""
    import wandb

    try:
        report.save()
    except (wandb.Error, ValueError) as error:
        raise ReportError(f"the report could not be saved: {error}") from None
    return report.url


def write_json(report: "wr.Report", file: Path) -> None:
    """Writes what `publish` would send."""
    model = report._to_model()
    content = {
        "entity": report.entity,
        "project": report.project,
        "title": report.title,
        "description": report.description,
        "spec": json.loads(
            model.spec.model_dump_json(by_alias=True, exclude_none=True)
        ),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=2) + "\n")


def _known(configs: Iterable[Any]) -> Iterator[TrackedRun]:
    """Runs by what they say of themselves; others in the project are none of ours."""
    for config in configs:
        if all(config.get(key) is not None for key in (ENV, ALGORITHM, NUM_ACTORS)):
            yield TrackedRun(config[ENV], config[ALGORITHM], config[NUM_ACTORS])


def _workspaces() -> Any:
    try:
        import wandb_workspaces.reports.v2 as wr
    except ImportError:
        raise ReportError(
            "a W&B report needs a package: pip install 'rllib_impass[wandb]'"
        ) from None
    return wr


def _summary(runs: Sequence[TrackedRun]) -> list[Any]:
    wr = _workspaces()
    algorithms = dict.fromkeys(run.algorithm for run in runs)
    counts = collections.Counter((run.env, run.algorithm) for run in runs)
    lines = [["runs", *algorithms], ["---"] * (1 + len(algorithms))]
    for env in dict.fromkeys(run.env for run in runs):
        lines.append([env, *(str(counts[env, name] or "-") for name in algorithms)])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return [
        wr.H1("Summary"),
        wr.MarkdownBlock(f"{_HOW_TO_READ} Runs when this was written:\n\n{table}"),
        wr.TableOfContents(),
    ]


def _env_section(env: str, runs: Sequence[TrackedRun]) -> list[Any]:
    """Return against steps and against time, an algorithm to a run set."""
    wr = _workspaces()
    here = [run for run in runs if run.env == env]
    panels = [
        *(_curve(EVALUATED, x, "evaluated return") for x in AXES),
        *(_curve(TRAINED, x, "training return") for x in AXES),
        wr.BarPlot(
            title="return, last evaluation",
            metrics=[EVALUATED],
            groupby_aggfunc="mean",
            groupby_rangefunc="stderr",
            layout=wr.Layout(w=_WHOLE, h=8),
        ),
    ]
    sets = {run.algorithm: {ENV: env, ALGORITHM: run.algorithm} for run in here}
    return [wr.H1(env), _grid(sets, (ALGORITHM, NUM_ACTORS), panels)]


def _actor_sections(runs: Sequence[TrackedRun]) -> list[Any]:
    """The same algorithm with several numbers of actors, where there are such runs."""
    wr = _workspaces()
    counts: dict[tuple[str, str], set[int]] = collections.defaultdict(set)
    for run in runs:
        counts[run.env, run.algorithm].add(run.num_actors)
    blocks: list[Any] = []
    for (env, algorithm), numbers in counts.items():
        if len(numbers) < 2:
            continue
        panels = [
            *(_curve(EVALUATED, x, "evaluated return") for x in AXES),
            _curve("charts/SPS", STEPS, "env steps per second"),
            _curve(LAG, STEPS, "policy lag, in weight versions"),
        ]
        same = {ENV: env, ALGORITHM: algorithm}
        sets = {f"actors: {n}": same | {NUM_ACTORS: n} for n in sorted(numbers)}
        blocks += [wr.H2(f"{algorithm} on {env}"), _grid(sets, (NUM_ACTORS,), panels)]
    return [wr.H1("Actors"), *blocks] if blocks else []


def _speed_section(runs: Sequence[TrackedRun]) -> list[Any]:
    wr = _workspaces()
    panels = [
        _curve("charts/SPS", STEPS, "env steps per second"),
        _curve(LAG, STEPS, "policy lag, in weight versions"),
        _curve(QUEUE, STEPS, "batches that wait for the learner"),
        _curve("env_runners/time_between_sampling", STEPS, "seconds an actor idles"),
    ]
    names = dict.fromkeys(run.algorithm for run in runs)
    sets = {name: {ALGORITHM: name} for name in names}
    return [wr.H1("Throughput and lag"), _grid(sets, (ENV, NUM_ACTORS), panels)]


def _settings_section(runs: Sequence[TrackedRun]) -> list[Any]:
    wr = _workspaces()
    layout = wr.Layout(w=_WHOLE, h=16)
    names = dict.fromkeys(run.algorithm for run in runs)
    sets = {name: {ALGORITHM: name} for name in names}
    panels = [wr.RunComparer(diff_only="split", layout=layout)]
    return [wr.H1("Settings"), _grid(sets, (), panels)]


def _grid(
    sets: dict[str, dict[str, Any]], group_by: Sequence[str], panels: list[Any]
) -> Any:
    """A panel grid.

    Args:
        sets: for each run set, by name, the config of its runs.
        group_by: the config keys whose equals share a line.
        panels: what is shown.
    """
    import wandb_workspaces.expr as expr

    wr = _workspaces()
    return wr.PanelGrid(
        runsets=[
            # No entity and no project: those of the report, which W&B need not be
            # asked for.
            wr.Runset(
                name=name,
                filters=expr.And(*(expr.Config(k) == v for k, v in config.items())),
                groupby=[f"config.{key}" for key in group_by],
            )
            for name, config in sets.items()
        ],
        panels=panels,
    )


def _curve(y: str, x: str, title: str) -> Any:
    wr = _workspaces()
    return wr.LinePlot(
        title=f"{title} against {AXES[x]}",
        x=x,
        y=[y],
        title_x=AXES[x],
        groupby_aggfunc="mean",
        groupby_rangefunc="stderr",
        legend_template="${runsetName}",
        max_runs_to_show=100,
        layout=wr.Layout(w=_HALF, h=8),
    )
