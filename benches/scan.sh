#!/bin/sh
# `jess check` on one thread against sha256sum over the same bytes: processor time (user and system) of both, interleaved
# in one series, and the medians as ratios. Then the start, the peak memory over a tree of files, and a text of 1 GB.
#
#   cargo build --release && benches/scan.sh [JESS [ROUNDS [SCALE]]]
#
# The mixed text is the benign part of training/ (documentation, code, pages, mail, tables in several languages), repeated;
# the others are one line of 8 MB and texts of 64 MB that are made to be slow. SCALE (1 when not given) multiplies all
# sizes, for a quicker look. Needs python3.
jess=${1:-target/release/jess} rounds=${2:-3} scale=${3:-1}
exec /usr/bin/python3 - "$jess" "$rounds" "$scale" <<'PYTHON'
import gzip, json, os, statistics, subprocess, sys, tempfile, threading
jess, rounds, scale = os.path.abspath(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])

def child(argv, feed=None):
    """Processor seconds and peak memory in MB of one process."""
    stdin = subprocess.PIPE if feed else subprocess.DEVNULL
    process = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if feed:
        writer = threading.Thread(target=feed, args=(process.stdin,))
        writer.start()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if feed:
        writer.join()
    if process.returncode not in (0, 1, 2):
        sys.exit(f"{argv}: exit {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024

def repeated(block, size):
    def feed(pipe):
        with pipe:
            for _ in range(size // len(block) + 1):
                pipe.write(block)
    return feed

with gzip.open("training/benign.jsonl.gz", "rt", encoding="utf-8") as lines:
    mixed = "\n\n".join(json.loads(line)["text"] for line in lines).encode()
million = int(1_000_000 * scale)
def fill(block, size):
    return (block * (size // len(block) + 1))[:size]
texts = {
    "mixed": lambda: fill(mixed, 100 * million),
    "mixed, one line": lambda: fill(mixed, 8 * million).replace(b"\n", b" "),
    "'['": lambda: fill(b"[", 64 * million),
    "'<style>'": lambda: fill(b"<style>", 64 * million),
    "base64 noise": lambda: fill(b"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0x9/kd+", 64 * million),
    "nested escapes": lambda: fill(b"%2541", 64 * million),
    "trigger words": lambda: fill(b"ignore all previous send reveal your ", 64 * million),
}
print(f"load {os.getloadavg()[0]:.1f}, {rounds} rounds")
with tempfile.TemporaryDirectory() as place:
    for name, make in texts.items():
        text = make()
        path = os.path.join(place, "text.md")
        with open(path, "wb") as file:
            file.write(text)
        scan, hashed, peak = [], [], 0
        for _ in range(rounds):
            seconds, memory = child([jess, "check", "--quiet", "--jobs", "1", path])
            scan.append(seconds)
            peak = max(peak, memory)
            hashed.append(child(["sha256sum", path])[0])
        s, h, size = statistics.median(scan), statistics.median(hashed), len(text) / 1e6
        print(f"{name:16} {size:5.0f} MB  {size / s:7.1f} MB/s  x{s / h:.2f} of sha256sum ({size / h:.0f} MB/s)  {peak:.0f} MB", flush=True)
    kilobyte = mixed[:1024]
    starts, plain = [], []
    for _ in range(rounds * 10):
        starts.append(child([jess, "check", "--quiet", "-"], repeated(kilobyte, 1))[0])
        plain.append(child(["/bin/true"])[0])
    print(f"1 kB on stdin    {1e3 * statistics.median(starts):.2f} ms; /bin/true {1e3 * statistics.median(plain):.2f} ms")
    tree = os.path.join(place, "tree")
    os.remove(path)
    for n in range(4000):
        os.makedirs(os.path.join(tree, str(n % 100)), exist_ok=True)
        at = n * 24571 % (len(mixed) - 50_000)
        with open(os.path.join(tree, str(n % 100), f"{n}.md"), "wb") as file:
            file.write(mixed[at:at + int(50_000 * scale)])
    print(f"tree, 4000 files {child([jess, 'check', '--quiet', tree])[1]:.0f} MB at most")
seconds, memory = child([jess, "check", "--quiet", "-"], repeated(mixed, 1000 * million))
print(f"1 GB on stdin    {1000 * scale / seconds:.1f} MB/s, {memory:.0f} MB at most")
PYTHON
