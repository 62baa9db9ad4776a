"""Runs: what they measure, what is kept, what is refused, how they stop."""

import signal
import subprocess
import sys
import threading
import time

import pytest

import nicforge
from conftest import SHORT


def test_the_main_job_gives_metrics_and_points(main_job):
    with pytest.warns(UserWarning, match="no setting that counts differs"):
        result = nicforge.run(main_job, rx_entries=128, **SHORT)
    assert [point.variant for point in result] == ["priv_ring", "priv_ring_small"]
    assert result[0].params["rx_entries"] == 128
    assert result.metrics["throughput_gbps"] == [point.metrics["throughput_gbps"] for point in result.points]
    assert result[0]["throughput_gbps"] > 1
    assert "throughput_gbps.ci95" in result.to_csv() or not result[0].intervals
    assert "throughput" in repr(result) or "sent" in repr(result)
    page = result._repr_html_()
    assert page.startswith('<div class="nicforge">') and page.count("<table>") == page.count("</table>") > 0


def test_values_are_those_of_the_command_line(main_job, command, tmp_path):
    settings = [f"--set={key}={value}" for key, value in SHORT.items()]
    subprocess.run([command, "run", main_job, *settings, "--out", tmp_path / "out", "--quiet"], check=True)
    result = nicforge.run(main_job, **SHORT)
    assert result.to_csv() == (tmp_path / "out" / "points.csv").read_text()


def test_seeds_variants_and_machines_are_chosen(main_job):
    result = nicforge.run(main_job, seeds=2, variants=["priv_ring_small"], machine="xeon-4216-cx5", **SHORT)
    assert [point.variant for point in result] == ["priv_ring_small"]
    assert result.to_dict()["points"][0]["seeds"] == [1, 2]
    assert nicforge.check(main_job, seeds=3).labels[-1].endswith("seed=3")
    with pytest.raises(nicforge.ConfigError, match="did you mean `priv_ring`"):
        nicforge.check(main_job, variants=["priv_rin"])


def test_what_is_wrong_in_a_file_has_its_line(scenario):
    file = scenario("rx_entrys = 128\n")
    with pytest.raises(nicforge.ConfigError, match="did you mean `rx_entries`") as caught:
        nicforge.run(file)
    line = file.read_text().splitlines().index("rx_entrys = 128") + 1
    assert (caught.value.file, caught.value.line, caught.value.column) == (str(file), line, 1)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (dict(rx_entris=1), "rx_entris=1: unknown setting"),
        (dict(rx_entries="many"), "rx_entries=many: "),
        (dict(rx_entries=[]), "the sweep of `rx_entries` is empty"),
        (dict(rx_entries=[64, 64]), "has 64 twice"),
        (dict(rx_entries=None), "is a NoneType"),
        (dict(seeds=0), "seeds=0"),
        (dict(variants="priv_ring"), "is no list"),
        (dict(machine="no-such"), "no machine file"),
        (dict(jobs=0), "jobs=0"),
    ],
)
def test_wrong_arguments_are_refused(main_job, arguments, text):
    with pytest.raises(nicforge.ConfigError) as caught:
        nicforge.run(main_job, **arguments)
    assert text in str(caught.value)
    assert caught.value.line is None or "machine" in arguments


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(nicforge.ConfigError, match="no-such.toml") as caught:
        nicforge.run("no-such.toml")
    assert caught.value.file == "no-such.toml"


def test_finished_points_are_kept_and_reports_not_replaced(scenario, tmp_path):
    file, out = scenario(), tmp_path / "out"
    first = nicforge.run(file, out=out)
    assert sorted(path.name for path in out.iterdir()) == ["points", "points.csv", "report.html", "report.json"]
    with pytest.warns(UserWarning, match="all 1 points were finished before"):
        again = nicforge.run(file, out=out)
    assert again.to_csv() == first.to_csv() == nicforge.load(out).to_csv()
    with pytest.raises(nicforge.FilesError, match="is of another run"):
        nicforge.run(file, out=out, rx_entries=64)
    nicforge.run(file, out=out, rx_entries=64, force=True)
    assert nicforge.load(out)[0].params["rx_entries"] == 64
    (out / "report.json").write_text("{")
    with pytest.raises(nicforge.FilesError, match="not a report.json"):
        nicforge.load(out)


def test_other_threads_run_while_a_point_runs(scenario):
    file, turns, over = scenario(), [], threading.Event()

    def count():
        while not over.is_set():
            turns.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    began = time.perf_counter()
    nicforge.run(file, window_ms=1)
    ended = time.perf_counter()
    over.set()
    thread.join()
    assert len([turn for turn in turns if began < turn < ended]) > 2


PROGRAM = """
import sys, nicforge
try:
    nicforge.run(sys.argv[1], window_ms=2000, progress=lambda progress: progress.packets and print("runs", flush=True))
except KeyboardInterrupt:
    print("stopped")
"""


def test_ctrl_c_stops_a_point(scenario):
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, scenario()], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "runs\n"
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert said.splitlines()[-1] == "stopped" and process.returncode == 0


def test_what_a_progress_function_raises_stops_the_run(scenario):
    def refuse(progress):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        nicforge.run(scenario(), window_ms=2000, progress=refuse)
