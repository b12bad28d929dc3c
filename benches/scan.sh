#!/bin/sh
# Throughput of `jess check` as ratios of processor time to sha256sum over the same bytes, interleaved in one series.
#
#   cargo build --release && benches/scan.sh [JESS [ROUNDS]]
#
# The text is the benign part of training/ (documentation, code, mail, tables in several languages), repeated to 100 MB;
# then one line of 8 MB, and texts made to be slow. Needs python3.
jess=${1:-target/release/jess} rounds=${2:-5}
exec /usr/bin/python3 - "$jess" "$rounds" <<'PYTHON'
import gzip, json, os, resource, statistics, subprocess, sys, tempfile
jess, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2])
def cpu(argv, stdin=None):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
with gzip.open("training/benign.jsonl.gz", "rt", encoding="utf-8") as lines:
    mixed = "\n\n".join(json.loads(line)["text"] for line in lines).encode()
size = 8 << 20
texts = {
    "mixed, 100 MB": (mixed * (100_000_000 // len(mixed) + 1))[:100_000_000],
    "mixed, one line of 8 MB": mixed[:size].replace(b"\n", b" "),
    "'[' repeated": b"[" * size,
    "'<style>' repeated": b"<style>" * (size // 7),
    "base64 noise": (b"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0x9/kd+" * (size // 43 + 1))[:size],
    "nested escapes": b"%2541" * (size // 5),
    "triggers": b"ignore all previous send reveal your " * (size // 38),
}
print("load", os.getloadavg()[0], "rounds", rounds)
with tempfile.TemporaryDirectory() as place:
    for name, text in texts.items():
        path = os.path.join(place, "text.md")
        with open(path, "wb") as file:
            file.write(text)
        scan, hashed = [], []
        for _ in range(rounds):
            scan.append(cpu([jess, "check", "--quiet", "--jobs", "1", path]))
            hashed.append(cpu(["sha256sum", path]))
        s, h = statistics.median(scan), statistics.median(hashed)
        print(f"{name:26} {len(text) / 1e6 / s:7.1f} MB/s of CPU   x{s / h:.2f} of sha256sum ({len(text) / 1e6 / h:.0f} MB/s)")
    kilobyte = mixed[:1024]
    path = os.path.join(place, "kilobyte")
    with open(path, "wb") as file:
        file.write(kilobyte)
    starts = [cpu([jess, "check", "--quiet", "-"], stdin=open(path)) for _ in range(rounds * 4)]
    plain = [cpu(["/bin/true"]) for _ in range(rounds * 4)]
    print(f"1 kB on stdin: {1e3 * statistics.median(starts):.1f} ms of CPU; /bin/true {1e3 * statistics.median(plain):.1f} ms")
PYTHON
