"""Traffic that is made in Python."""

import os
import struct

import pytest

import nicforge

REPLAY = dict(polling_starts_ms=0, table_entries=4096, nics=1, cores=2, preload_flows=False)


def every(gap_ns, count, size=64):
    return [(gap_ns * number, nicforge.udp_frame(size, source_port=1024 + number % 100)) for number in range(count)]


def test_all_frames_arrive_at_their_times(main_job):
    result = nicforge.run(main_job, traffic=every(1000, 500, 1000), variants=["priv_ring"], **REPLAY)
    # 1000 bytes every 1000 ns.
    assert result[0]["offered_gbps"] == result[0]["throughput_gbps"] == pytest.approx(8, rel=0.05)


def test_functions_and_generators_make_frames_and_are_kept(scenario, tmp_path):
    def frames():
        yield from every(50, 200)

    arguments = dict(out=tmp_path / "out", **REPLAY)
    first = nicforge.run(scenario(), traffic=frames, **arguments)
    with pytest.warns(UserWarning, match="all 1 points were finished before"):
        again = nicforge.run(scenario(), traffic=frames(), **arguments)
    assert first.to_csv() == again.to_csv()
    with pytest.raises(nicforge.FilesError, match="of another run"):
        nicforge.run(scenario(), traffic=every(50, 201), **arguments)
    scaled = nicforge.run(scenario(), traffic=frames, replay_timing="scaled", offered_gbps=0.1, **REPLAY)
    assert scaled[0]["offered_gbps"] == pytest.approx(0.1, rel=0.05)


def test_frames_have_right_checksums():
    for size in (60, 61, 1514):
        frame = nicforge.udp_frame(size, "192.0.2.1", "198.51.100.7", 5, 65535)
        assert len(frame) == size and frame[26:34] == bytes([192, 0, 2, 1, 198, 51, 100, 7])
        assert struct.unpack(">HHH", frame[34:40]) == (5, 65535, size - 34)
        udp = frame[26:34] + struct.pack(">HH", 17, size - 34) + frame[34:] + bytes(size % 2)
        for covered in (frame[14:34], udp):
            total = sum(struct.unpack(f">{len(covered) // 2}H", covered))
            assert (total >> 16) + (total & 0xFFFF) == 0xFFFF
    with pytest.raises(nicforge.ConfigError, match="give 60 to 9216 bytes"):
        nicforge.udp_frame(10)


@pytest.mark.parametrize(
    ("traffic", "text"),
    [
        ([], "there is no frame"),
        (5, "has no frames"),
        ([(0, b"short")], "frame 1 has 5 bytes"),
        ([(0, bytes(9217))], "frame 1 has 9217 bytes"),
        ([bytes(60)], "frame 1 is .* yield pairs"),
        ([(1, 64)], "frame 1 is .* yield pairs"),
        ([(float("nan"), bytes(60))], "frame 1 is"),
        ([(5, bytes(60)), (4, bytes(60))], "frame 2 comes at 4 ns, before"),
        ([(-1, bytes(60))], "before"),
        ([(2**63, bytes(60))], "too late"),
    ],
)
def test_what_is_no_traffic_is_refused(main_job, traffic, text, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(nicforge.ConfigError, match=text):
        nicforge.check(main_job, traffic=traffic)
    assert not os.listdir(tmp_path)


def test_what_a_generator_raises_is_passed_on(main_job):
    def broken():
        yield 0, bytes(60)
        raise LookupError("broken")

    with pytest.raises(LookupError, match="broken"):
        nicforge.check(main_job, traffic=broken)
    with pytest.raises(nicforge.ConfigError, match="`pcap` and `traffic` both"):
        nicforge.check(main_job, traffic=broken, pcap="x.pcap")
