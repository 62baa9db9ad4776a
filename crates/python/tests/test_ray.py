"""Sweeps on a cluster of two nodes on this machine."""


import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

import nicforge
from conftest import ROOT, SHORT

pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
from ray.cluster_utils import Cluster  # noqa: E402

DEPTHS = [64, 128, 256]


@pytest.fixture(scope="module")
def cluster():
    """A head without processors, and two nodes with one each."""
    started = Cluster(initialize_head=True, head_node_args=dict(num_cpus=0, include_dashboard=False))
    started.nodes = [started.add_node(num_cpus=1) for _ in range(2)]
    yield started
    started.shutdown()


@pytest.fixture
def on(cluster):
    """The cluster, as an argument."""
    return f"ray:{cluster.address}"


def record(folder):
    """The record in ``folder``, without what is another time each time."""
    text = (folder / "report.json").read_text()
    return [line for line in text.splitlines() if '"wall_seconds"' not in line]


def assert_same(folder, other):
    assert (folder / "points.csv").read_bytes() == (other / "points.csv").read_bytes()
    assert record(folder) == record(other)


def test_results_are_those_of_one_machine(scenario, on, tmp_path):
    file, seen = scenario(), []
    arguments = dict(rx_entries=DEPTHS, seeds=2)
    nicforge.sweep(file, out=tmp_path / "here", progress=False, **arguments)
    nicforge.sweep(file, out=tmp_path / "there", on=on, progress=seen.append, **arguments)
    assert_same(tmp_path / "here", tmp_path / "there")
    assert (seen[0].finished, seen[-1].finished, seen[-1].total, seen[-1].share) == (0, 6, 6, 1.0)
    assert seen[-1].packets > 0 and len([label for one in seen for label in one.labels]) == 6


def test_files_go_with_the_points(scenario, on, tmp_path):
    (tmp_path / "sizes.txt").write_text("64 3\n1500 1\n")
    file = scenario('packet_sizes = "empirical"\nsize_file = "sizes.txt"\n')
    assert nicforge.run(file, on=on).to_csv() == nicforge.run(file).to_csv()


def test_a_sweep_that_was_stopped_continues_on_either(scenario, on, tmp_path):
    file = scenario()

    def enough(progress):
        if progress.finished >= 2:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        nicforge.sweep(file, out=tmp_path / "out", on=on, progress=enough, jobs=1, rx_entries=DEPTHS)
    with pytest.warns(UserWarning, match="continues: 2 of 3 points"):
        nicforge.sweep(file, out=tmp_path / "out", on=on, progress=False, rx_entries=DEPTHS)
    with pytest.warns(UserWarning, match="all 3 points were finished before"):
        again = nicforge.sweep(file, out=tmp_path / "out", progress=False, rx_entries=DEPTHS)
    assert again.to_csv() == nicforge.sweep(file, progress=False, rx_entries=DEPTHS).to_csv()


# A thirtieth of its points, a fiftieth of their windows.
NM_05 = dict(rx_entries=[256, 1024], array_mib=[1, 8], reads=[2, 10], io_ways=[2], cores=4, flows=10000,
             polling_starts_ms=0, warmup_ms=0.1, window_ms=0.1)


def test_a_node_that_dies_takes_no_result_with_it(cluster, on, tmp_path):
    file = ROOT / "scenarios" / "paper" / "nm-05.toml"
    victim, killed = cluster.add_node(num_cpus=2), []

    def kill(progress):
        if progress.finished >= 4 and not killed:
            killed.append(progress.finished)
            cluster.remove_node(victim, allow_graceful=False)

    nicforge.sweep(file, out=tmp_path / "there", on=on, progress=kill, **NM_05)
    nicforge.sweep(file, out=tmp_path / "here", progress=False, **NM_05)
    assert killed and killed[0] < 16
    assert_same(tmp_path / "here", tmp_path / "there")


def test_points_without_a_result_end_the_run(scenario, on, monkeypatch, tmp_path):
    sizes = tmp_path / "sizes.txt"
    sizes.write_text("64 3\n")
    job = nicforge.Job(scenario('packet_sizes = "empirical"\nsize_file = "sizes.txt"\n'))
    sizes.write_text("1500 1\n")
    with pytest.raises(nicforge.RunError, match="a file has changed since the run began"):
        job.run(on=on)

    def dying():
        def task(*_):
            import os

            os._exit(1)

        return task

    monkeypatch.setattr("nicforge._ray._task_function", dying)
    monkeypatch.setattr("nicforge._ray.RETRIES", 1)
    with pytest.raises(nicforge.RunError, match="^priv_ring: the cluster has no result after 2 tries: "):
        nicforge.run(scenario(), on=on)


def shim(folder, native):
    """A folder whose package nicforge hides the installed one."""
    package = folder / "nicforge"
    package.mkdir()
    (package / "__init__.py").write_text("")
    if native:
        (package / "_native.py").write_text(native)
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize(
    ("native", "text"),
    [
        ("", "lacks the package nicforge .* install the wheel"),
        ("version = lambda: '0.0.9'\nprogram = lambda: 'it'\n", "has nicforge 0.0.9 .* install the wheel"),
        ("import importlib.metadata\nversion = lambda: importlib.metadata.version('nicforge')\nprogram = lambda: 'it'\n",
         "has another build of nicforge"),
    ],
)
def test_a_node_without_the_same_package_is_named(cluster, on, scenario, tmp_path, monkeypatch, native, text):
    folder = tmp_path / "shim"
    folder.mkdir()
    node = cluster.add_node(num_cpus=4, env_vars=shim(folder, native))
    try:
        with pytest.raises(nicforge.ClusterError, match=f"node {node.node_ip_address} .*{text}"):
            nicforge.run(scenario(), on=on)
        # One that comes later is seen when a point comes to it.
        monkeypatch.setattr("nicforge._ray.check_nodes", lambda ray: None)
        with pytest.raises(nicforge.ClusterError, match=f"node {node.node_ip_address} .*{text}"):
            nicforge.run(scenario(), on=on, seeds=12)
    finally:
        cluster.remove_node(node)


def server_of(answer):
    """A server that says ``answer``."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):  # Who came may go at any time.
            connection, _ = server.accept()
            with connection:
                connection.sendall(answer)
                connection.recv(100)
                connection.recv(100)

    threading.Thread(target=serve, daemon=True).start()
    return server


def test_addresses_without_a_cluster_are_refused(scenario, monkeypatch):
    monkeypatch.setattr("nicforge._reach.SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    settings = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    with server_of(b"") as mute, server_of(b"HTTP/1.1 400 Bad Request\r\n\r\n") as web, server_of(settings) as elsewhere:
        for on, text in [
            (f"ray:127.0.0.1:{port}", "no Ray cluster at .*: Connection refused; start one"),
            (f"ray:127.0.0.1:{mute.getsockname()[1]}", "nothing answers at"),
            (f"ray://127.0.0.1:{web.getsockname()[1]}", "is no Ray cluster"),
            (f"ray:127.0.0.1:{elsewhere.getsockname()[1]}", "this machine is no node of the cluster at"),
            ("ray:127.0.0.1", "is no address of a Ray cluster"),
            ("ray:no-such-host.invalid:6379", "no Ray cluster at"),
        ]:
            with pytest.raises(nicforge.ClusterError, match=text):
                nicforge.run(scenario(), on=on)
    monkeypatch.setattr("nicforge._reach._clusters_here", set)
    with pytest.raises(nicforge.ClusterError, match="no Ray cluster runs here; start one"):
        nicforge.run(scenario(), on="ray")
    monkeypatch.setattr("nicforge._reach._clusters_here", lambda: {"a:1", "b:2"})
    with pytest.raises(nicforge.ClusterError, match="several Ray clusters run on this machine: a:1, b:2;"):
        nicforge.run(scenario(), on="ray:auto")
    with pytest.raises(nicforge.ConfigError, match='write on="ray"'):
        nicforge.run(scenario(), on="slurm")
    with pytest.raises(nicforge.ConfigError, match="on this machine only"):
        nicforge.run(scenario(), on="ray", app=type("App", (nicforge.Application,), {}))


PROGRAM = """
import sys, nicforge
try:
    nicforge.sweep(sys.argv[1], on=sys.argv[2], out=sys.argv[3], offered_gbps=[1, 200, 201, 202], jobs=2,
                   window_ms=[0.05, 5000], progress=lambda progress: progress.finished and print("runs", flush=True))
except KeyboardInterrupt:
    print("stopped")
"""

def idle(cluster):
    """Waits until nothing runs on the cluster."""
    import ray

    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        for _ in range(300):
            if ray.available_resources().get("CPU") == ray.cluster_resources()["CPU"]:
                return
            threading.Event().wait(0.1)
        raise AssertionError("tasks go on")
    finally:
        ray.shutdown()


def test_ctrl_c_stops_points_on_all_nodes(scenario, cluster, on, tmp_path):
    arguments = [sys.executable, "-c", PROGRAM, scenario(), on, tmp_path / "out"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert said.splitlines()[-1] == "stopped" and process.returncode == 0
    assert list((tmp_path / "out" / "points").iterdir())
    idle(cluster)


def environment(**more):
    return {**os.environ, "NICFORGE_PYTHON": sys.executable, **more}


def test_the_command_gives_the_same_bytes(command, scenario, cluster, tmp_path):
    arguments = [command, "run", scenario("[sweep]\nrx_entries = [64, 128]\n"), "--seeds", "2"]
    subprocess.run([*arguments, "--out", tmp_path / "here", "--quiet"], check=True)
    there = [*arguments, "--out", tmp_path / "there", "--ray", cluster.address]
    said = subprocess.run(there, check=True, env=environment(), capture_output=True, text=True)
    assert "4/4 " in said.stderr
    assert_same(tmp_path / "here", tmp_path / "there")
    # Without a cluster, but with all points, nobody is asked.
    again = [*arguments, "--out", tmp_path / "there", "--ray", "127.0.0.1:1"]
    assert "all 4 points were finished" in subprocess.run(again, check=True, capture_output=True, text=True).stderr


def test_the_command_refuses_what_cannot_run_points(command, scenario, tmp_path):
    def refused(text, **more):
        arguments = [command, "run", scenario(), "--out", tmp_path / "out", "--ray", "127.0.0.1:1"]
        said = subprocess.run(arguments, env=environment(**more), capture_output=True, text=True, timeout=60)
        assert said.returncode == 2 and text in said.stderr and "Traceback" not in said.stderr, said.stderr

    refused("no Ray cluster at 127.0.0.1:1: Connection refused")
    refused("NICFORGE_PYTHON=/no/python: cannot be started", NICFORGE_PYTHON="/no/python")
    lacks = tmp_path / "lacks"
    lacks.mkdir()
    refused("has no package nicforge that can run points", **shim(lacks, ""))
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import nicforge._native as native\nnative.version = lambda: '0.0.9'\n")
    refused("is of version 0.0.9, and this command", PYTHONPATH=str(other))


def test_ctrl_c_stops_the_command_and_its_points(command, scenario, cluster, tmp_path):
    file = scenario("[sweep]\nwindow_ms = [0.1, 5000]\n")
    arguments = [command, "run", file, "--out", tmp_path / "out", "--ray", cluster.address]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, env=environment(), text=True, start_new_session=True)
    assert process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)  # As a terminal does.
    said = process.communicate(timeout=60)[1]
    assert "stopped: 1 of 2 points are kept" in said and "Traceback" not in said
    idle(cluster)
    assert len(list((tmp_path / "out" / "points").iterdir())) == 1
