"""Two nodes, and then one."""

import logging
import tempfile
from pathlib import Path

import pytest

from new_process import run_python


@pytest.mark.timeout(400)
def test_training_survives_the_loss_of_a_node():
    # A process of its own: the other tests' Ray is not this cluster.
    script = """
        import time
        import ray
        from ray.cluster_utils import Cluster
        from configs import small_config

        args = dict(object_store_memory=150 * 1024 * 1024, include_dashboard=False)
        cluster = Cluster(
            initialize_head=True, head_node_args=dict(num_cpus=2, **args)
        )
        other = cluster.add_node(num_cpus=1, object_store_memory=150 * 1024 * 1024)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)

        config = small_config().env_runners(num_env_runners=3)
        algorithm = config.build_algo()
        nodes = algorithm.env_runner_group.foreach_env_runner(
            lambda r: ray.get_runtime_context().get_node_id(), local_env_runner=False
        )
        assert len(set(nodes)) == 2, nodes
        algorithm.train()
        cluster.remove_node(other, allow_graceful=False)

        key = "num_env_steps_sampled_lifetime"
        before = algorithm.train()[key]
        started, longest = time.monotonic(), 0.0
        while time.monotonic() - started < 12:
            began = time.monotonic()
            after = algorithm.train()[key]
            longest = max(longest, time.monotonic() - began)
        healthy = algorithm.env_runner_group.num_healthy_remote_env_runners()
        print("RESULT", before, after, healthy, longest)
        algorithm.stop()
        ray.shutdown()
        cluster.shutdown()
    """
    path = str(Path(__file__).parents[1])
    # Where the cluster leaves its address, which a test beside this one could find.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        done = run_python(script, timeout=380, PYTHONPATH=path, RAY_TMPDIR=folder)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    assert lines, done.stderr[-3000:]
    _, before, after, healthy, longest = lines[0].split()
    logging.info("after losing a node: %s", lines[0])
    assert float(after) > float(before) + 500
    assert int(healthy) == 2
    assert float(longest) < 15
