"""Applications in Python."""

import pytest

import nicforge

FEW = dict(warmup_ms=0.02, window_ms=0.05, offered_gbps=10)


class Count(nicforge.Application):
    work_cycles = 50
    memory_bytes = 64
    packets = 0

    def packet(self, frame):
        assert len(frame) == 64 and 0 <= self.core < self.cores == 2
        Count.packets += 1
        self.touch(8 * (Count.packets % 8), write=True)
        return "every_fourth" if Count.packets % 4 == 0 else None


def test_frames_come_and_are_sent_or_dropped_by_name(scenario):
    result = nicforge.run(scenario(), app=Count, **FEW)
    assert result[0].params["app"] == "python" and Count.packets > 10
    assert result[0]["drops.every_fourth"] > 0 and result[0]["throughput_gbps"] > 0


@pytest.mark.parametrize(
    ("answer", "exception", "text"),
    [
        (lambda self, frame: 1 / 0, ZeroDivisionError, "division"),
        (lambda self, frame: 5, TypeError, "returns None"),
        (lambda self, frame: "No Name", ValueError, "no name of a drop"),
        (lambda self, frame: self.touch(0), IndexError, "memory_bytes = 0"),
        (lambda self, frame: frame.append(1), ValueError, "length of the frame"),
    ],
)
def test_what_an_application_does_wrong_ends_the_run(scenario, answer, exception, text):
    wrong = type("Wrong", (nicforge.Application,), {"packet": answer})
    with pytest.raises(exception, match=text):
        nicforge.run(scenario(), app=wrong, **FEW)
    # The next run is not hurt by it.
    assert nicforge.run(scenario(), **FEW)[0]["throughput_gbps"] > 0


def test_other_classes_and_kept_points_are_refused(scenario, tmp_path):
    with pytest.raises(nicforge.ConfigError, match="is no nicforge.Application"):
        nicforge.run(scenario(), app=int)
    with pytest.raises(nicforge.ConfigError, match="are not kept"):
        nicforge.run(scenario(), app=Count, out=tmp_path / "out")
    with pytest.raises(ValueError, match="app=CLASS"):
        nicforge.run(scenario(), app="python", **FEW)
