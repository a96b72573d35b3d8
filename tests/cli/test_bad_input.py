"""Bad input to `rllib train`: one line, exit code 2, nothing started."""

import pytest
from rllib_command import assert_usage_error, rllib_many

GOOD = """
small:
  run: IMPASS
  env: InvertedPendulum-v5
  stop: {training_iteration: 2}
  config: {lr: 1e-4}
"""

# What is written instead of which part of the good file, and a part of the answer.
BAD_FILES = [
    ("  config:", "  surprise: 1\n  config:", "no setting 'surprise'"),
    ("lr: 1e-4", "gama: 0.9", "did you mean 'gamma'"),
    ("env: Inv", "env: Unv", "did you mean 'InvertedPendulum-v5'"),
    ("run: IMPASS", "run: IMPAS", "did you mean 'IMPASS'"),
    ("  stop: {training_iteration: 2}\n", "", "stop is missing"),
    ("training_iteration", "training_iterations", "did you mean"),
    ("  run", " run", ".yaml"),
    ("lr: 1e-4", "lr: 1e-4, lr: 1", "twice"),
    ("lr: 1e-4", "lr: !!python/object/apply:os.getcwd []", "python/object"),
    ("small:", "a/../small:", "a/../small"),
    ("env: InvertedPendulum-v5", "env: evil.Env", "--import evil"),
]
GOOD_FILE = ["train", "file", "good.yaml"]
BAD_FLAGS = [
    (["train", "fil", "x.yaml"], "rllib train file FILE.yaml"),
    (["train", "--run", "IMPASS", "--stop", "{training_iteration: 1}"], "env is"),
    ([*GOOD_FILE, "--stop", "{"], "--stop"),
    ([*GOOD_FILE, "--set", "lr"], "name=value"),
    ([*GOOD_FILE, "--resume"], "there is no run 'small'"),
    ([*GOOD_FILE, "--restore", "gone"], "gone does not exist"),
    ([*GOOD_FILE, "--restore", "."], "has no checkpoints"),
    ([*GOOD_FILE, "-n", "../up"], "../up"),
    ([*GOOD_FILE, "--storage-path", "good.yaml"], "results cannot go to"),
    (["train", "file", "https://example.org/a.yaml"], "a.yaml"),
    (["train", "file", "gone.py"], "gone.py"),
]


@pytest.fixture(scope="module")
def bad_results(tmp_path_factory):
    """The answers to all of them, in the order of the lists."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "evil.py").write_text("open('proof', 'w').close()\nclass Env: ...\n")
    (folder / "good.yaml").write_text(GOOD)
    commands = [words for words, _ in BAD_FLAGS]
    for number, (old, new, _) in enumerate(BAD_FILES):
        assert old in GOOD
        (folder / f"{number}.yaml").write_text(GOOD.replace(old, new))
        commands.append(["train", "file", f"{number}.yaml"])
    before = sorted(folder.iterdir())
    storage = ["--storage-path", "results"]
    commands = [[words[0], *storage, *words[1:]] for words in commands]
    results = rllib_many(commands, cwd=folder)
    # Nothing was started or written, and the evil module was not imported.
    assert sorted(folder.iterdir()) == before
    return results


@pytest.mark.parametrize("number", range(len(BAD_FLAGS) + len(BAD_FILES)))
def test_bad_input_is_one_line_and_exit_code_2_and_starts_nothing(bad_results, number):
    messages = [*(m for _, m in BAD_FLAGS), *(m for _, _, m in BAD_FILES)]
    assert_usage_error(bad_results[number], messages[number])
