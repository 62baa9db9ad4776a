"""Sweeps, tables and plots."""

import pytest

import nicforge


def test_a_sweep_has_all_combinations_in_order(scenario):
    seen = []
    result = nicforge.sweep(scenario(), rx_entries=[64, 256], offered_gbps=[20, 40.5], progress=seen.append)
    assert result.params["rx_entries"] == [64, 64, 256, 256]
    assert result.params["offered_gbps"] == [20, 40.5, 20, 40.5]
    assert result.varying == ["rx_entries", "offered_gbps"] or set(result.varying) == {"rx_entries", "offered_gbps"}
    assert (seen[-1].finished, seen[-1].total, seen[-1].share) == (4, 4, 1.0)
    assert sorted(label for one in seen for label in one.labels) == sorted(nicforge.check(
        scenario(), rx_entries=[64, 256], offered_gbps=[20, 40.5]).labels)
    assert result.point(rx_entries=256, offered_gbps=20) is result[2]
    with pytest.raises(LookupError, match="2 of 4 points"):
        result.point(rx_entries=256)


def test_points_that_run_alone_make_the_same_record(scenario):
    arguments = dict(rx_entries=[64, 128, 256], seeds=2)
    whole = nicforge.sweep(scenario(), progress=False, jobs=3, **arguments)
    job = nicforge.Job(scenario(), **arguments)
    alone = [job._native.run_task(index) for index in reversed(range(6))]
    record, _ = job._native.record(alone[::-1], 0.0)
    assert record.csv() == whole.to_csv()


def test_a_bar_or_lines_show_progress(scenario, capsys, monkeypatch):
    nicforge.sweep(scenario(), rx_entries=[64, 128])
    assert "2/2 points" in capsys.readouterr().err
    monkeypatch.setattr("nicforge._progress._bar", lambda: None)
    nicforge.sweep(scenario(), rx_entries=[64, 128], jobs=1)
    assert capsys.readouterr().err.splitlines() == ["1/2 priv_ring rx_entries=64", "2/2 priv_ring rx_entries=128"]


def test_a_table_of_pandas_has_the_columns_of_points_csv(scenario):
    pandas = pytest.importorskip("pandas")
    result = nicforge.sweep(scenario(), rx_entries=[64, 128], progress=False)
    table = result.to_pandas()
    assert list(table.columns) == result.to_csv().splitlines()[0].split(",")
    assert list(table.rx_entries) == [64, 128]
    assert list(table.throughput_gbps) == result.metrics["throughput_gbps"]
    assert pandas.isna(table["no_drop_gbps"]).all()


def test_plots_are_lines_over_what_varies_and_else_bars(scenario):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    result = nicforge.sweep(scenario(), rx_entries=[64, 128, 256], progress=False)
    ax = result.plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rx_entries", "throughput (Gbit/s)")
    assert [list(line.get_xdata()) for line in ax.get_lines()][0] == [64, 128, 256]
    assert len(nicforge.run(scenario()).plot("latency_us.p99").patches) == 1
    with pytest.raises(nicforge.ConfigError, match="there is no metric `speed`"):
        result.plot("speed")
    with pytest.raises(nicforge.ConfigError, match="`depth` is not among the settings"):
        result.plot(x="depth")
