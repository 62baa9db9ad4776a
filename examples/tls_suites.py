#!/usr/bin/env python3
"""Runs public TLS test suites over the NIC's offload and over plain OpenSSL, and prints what differs.

Both suites lie beside the project; nothing of them is part of it.

  tlsfuzzer   git clone https://github.com/tlsfuzzer/tlsfuzzer; pip install --pre tlslite-ng
  BoringSSL   its test runner (`ssl/test/runner`, built by `go test -c`) at the commit that OpenSSL's submodule names,
              and OpenSSL's `test/ossl_shim`, built against the installed libssl. Two lines change: the runner listens
              on every address, and the shim connects to the address in SHIM_PEER (127.0.0.1 if there is none).

As root, after `cargo build --release -p nicforge-cli -p nicforge-preload`:

  examples/tls_suites.py --nicforge target/release/nicforge --tlsfuzzer ~/tlsfuzzer
  examples/tls_suites.py --nicforge target/release/nicforge --runner runner --shim ossl_shim --config ossl_config.json

The exit code is 1 if a case fails over the NIC that does not fail with plain OpenSSL, unless DIFFERS says why.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

NAMESPACE = "nf-suites"
OURS, KERNELS = "10.9.0.2", "10.9.0.1"

# Cases that differ by what OpenSSL does once a connection has kernel TLS, whoever implements it.
RENEGOTIATES = "OpenSSL does not renegotiate over kernel TLS: it answers with the alert no_renegotiation"
DIFFERS = {
    r"Renegotiate-|ExtendedMasterSecret-Renego|.*renegotiation": RENEGOTIATES,
    r"keyupdate": "OpenSSL 3.0 gives kernel TLS no key after an update",
    r"LargePlaintext": "refused by its length, so OpenSSL's error has another text; the alert is the same",
    r"SendEmptyRecords": "OpenSSL counts empty records; kernel TLS shows it none",
}

# Scripts that measure time, or that need more than a server.
SKIPPED = ("timing", "minerva", "lucky13", "bleichenbacher", "shared-secret-padding", "random", "marvin")


def in_namespace(*words):
    return ["ip", "netns", "exec", NAMESPACE, *words]


class Setting:
    """A namespace with a service that has one address; the kernel has the other end of its TAP device."""

    def __init__(self, nicforge, folder):
        self.nicforge, self.folder, self.started = os.path.abspath(nicforge), folder, []
        for name, option in (("plain", ""), ("offloaded", "Options = KTLS\n")):
            text = "openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\n"
            text += "MinProtocol = TLSv1\nCipherString = ALL:@SECLEVEL=0\n" + option
            pathlib.Path(folder, name + ".cnf").write_text(text)

    def __enter__(self):
        subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
        subprocess.run(in_namespace("ip", "link", "set", "lo", "up"), check=True)
        service = ["--serve", "--service", self.path("service"), "--tap", "nf0", "--address", OURS + "/24"]
        self.start(in_namespace(self.nicforge, "sockets", *service))
        while subprocess.run(in_namespace("ip", "addr", "add", KERNELS + "/24", "dev", "nf0"), stderr=-3).returncode:
            if self.started[0].poll() is not None:
                sys.exit("the service did not start: see its message above")
            time.sleep(0.1)
        subprocess.run(in_namespace("ip", "link", "set", "nf0", "up"), check=True)
        return self

    def __exit__(self, *_):
        for program in reversed(self.started):
            program.terminate()
            program.wait()
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=False)

    def path(self, name):
        return str(pathlib.Path(self.folder, name))

    def start(self, command, **more):
        self.started.append(subprocess.Popen(command, **more))

    def over_nic(self, *words):
        return [self.nicforge, "sockets", "--service", self.path("service"), "--", *words]

    def counters(self):
        shown = subprocess.run([self.nicforge, "ss", "--json", "--service", self.path("service")], capture_output=True, text=True)
        return dict(re.findall(r'"([tr]x_tls_\w+|tls_\w+)": ([1-9]\d*)', shown.stdout))


def boringssl(setting, options):
    """Runs the runner with a shim whose connections go either way; returns whether each case passed."""
    results = {}
    for way in ("plain", "offloaded"):
        shim = os.path.abspath(options.shim)
        words = setting.over_nic(shim) if way == "offloaded" else [shim]
        script = pathlib.Path(setting.folder, "shim-" + way)
        peer = KERNELS if way == "offloaded" else "127.0.0.1"
        script.write_text(f'#!/bin/sh\nexport OPENSSL_CONF={setting.path(way + ".cnf")} SHIM_PEER={peer}\nexec {" ".join(words)} "$@"\n')
        script.chmod(0o755)
        runner = [os.path.abspath(options.runner), "-shim-path", str(script), "-shim-config", os.path.abspath(options.config)]
        runner += ["-pipe", "-allow-unimplemented", "-num-workers", str(os.cpu_count())]
        folder = options.certificates or os.path.dirname(os.path.abspath(options.runner))
        done = subprocess.run(in_namespace(*runner), cwd=folder, capture_output=True, text=True)
        found = re.findall(r"^(PASSED|FAILED) \((.*)\)$", done.stdout + done.stderr, re.M)
        results[way] = {name: result == "PASSED" for result, name in found}
    return results["plain"], results["offloaded"]


def tlsfuzzer(setting, options):
    """Runs each script against two `openssl s_server`; returns which conversations failed, and how many passed."""
    folder = os.path.abspath(options.tlsfuzzer)
    certificate = ["-key", folder + "/tests/serverX509Key.pem", "-cert", folder + "/tests/serverX509Cert.pem"]
    results = {}
    # Scripts draw conversations at random. Both ways draw the same: each draw has a generator of its own.
    draws = "import random\nrandom.sample = lambda among, count: random.Random(1).sample(list(among), count)\n"
    pathlib.Path(setting.path("sitecustomize.py")).write_text(draws)
    for way, host in (("plain", "127.0.0.1"), ("offloaded", OURS)):
        words = ["openssl", "s_server", *certificate, "-www", "-quiet", "-accept", host + ":4433"]
        words = setting.over_nic(*words) if way == "offloaded" else words
        setting.start(in_namespace(*words), env={**os.environ, "OPENSSL_CONF": setting.path(way + ".cnf")}, stdout=-3, stderr=-3)
        time.sleep(1)
        results[way] = {}
        for script in sorted(pathlib.Path(folder, "scripts").glob("test-*.py")):
            if any(word in script.name for word in SKIPPED):
                continue
            command = in_namespace(sys.executable, str(script), "-h", host, "-p", "4433", "-n", str(options.most))
            environment = {**os.environ, "PYTHONPATH": folder + ":" + setting.folder}
            try:
                done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1800)
            except subprocess.TimeoutExpired:
                results[way][script.name + ": ends"] = False
                continue
            passed = re.search(r"^PASS: (\d+)", done.stdout, re.M)
            results[way][script.name + ": ends"] = passed is not None
            for conversation in re.findall(r"^\t'(.*)'$", done.stdout, re.M):
                results[way][f"{script.name}: {conversation}"] = False
            if passed:
                results[way][script.name + ": passed"] = int(passed[1])
    return results["plain"], results["offloaded"]


def compare(suite, plain, offloaded):
    """Prints how the two differ; returns whether something fails that DIFFERS does not explain."""
    passed = lambda results: sum(int(result) for name, result in results.items() if not name.endswith(": ends"))
    print(f"{suite}: passed with plain OpenSSL {passed(plain)}, over the NIC {passed(offloaded)}")
    for name in sorted(name for name in plain if name.endswith(": passed")):
        if plain[name] != offloaded.get(name):
            print(f"  {name} {plain[name]} with plain OpenSSL, {offloaded.get(name)} over the NIC")
    worse = False
    for name in sorted(offloaded):
        if offloaded[name] is not False or plain.get(name, True) is False:
            continue
        reason = next((reason for pattern, reason in DIFFERS.items() if re.search(pattern, name)), None)
        print(f"  only over the NIC: {name}: {reason or 'NOT EXPLAINED'}")
        worse |= reason is None
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nicforge", default=shutil.which("nicforge"), help="the binary, with libnicforge_sockets.so beside it")
    parser.add_argument("--tlsfuzzer", help="folder of tlsfuzzer")
    parser.add_argument("--most", type=int, default=0, help="conversations that a script draws, the same each way; 0: all")
    parser.add_argument("--runner", help="BoringSSL's test runner")
    parser.add_argument("--certificates", help="the runner's folder in BoringSSL, where its certificates lie; that of RUNNER if not given")
    parser.add_argument("--shim", help="OpenSSL's shim")
    parser.add_argument("--config", help="OpenSSL's ossl_config.json")
    options = parser.parse_args()
    if not options.nicforge or not (options.tlsfuzzer or (options.runner and options.shim and options.config)):
        parser.error("give --nicforge, and --tlsfuzzer or --runner, --shim and --config")
    worse = False
    with tempfile.TemporaryDirectory() as folder, Setting(options.nicforge, folder) as setting:
        if options.runner:
            worse |= compare("BoringSSL", *boringssl(setting, options))
        if options.tlsfuzzer:
            worse |= compare("tlsfuzzer", *tlsfuzzer(setting, options))
        for name, count in setting.counters().items():
            print(f"  {name} {count}")
    sys.exit(worse)


if __name__ == "__main__":
    main()
