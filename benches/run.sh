#!/bin/sh
# What a sandbox adds to /bin/true, and to opening a file: jess run in both tiers, an equivalent bubblewrap run, and no
# sandbox, interleaved.
#
#   cargo build --release && benches/run.sh [JESS [ROUNDS]]
#
# Run it as an ordinary user. Prints medians of wall and processor time, their ratios, the cost of an open, and memory.
# Processor time counts everything that is left to be reaped: bubblewrap does not wait for its init process. jess-run is
# measured if it lies beside JESS. Needs python3, cc and bubblewrap.
jess=${1:-target/release/jess} rounds=${2:-200}
exec /usr/bin/python3 - "$jess" "$rounds" <<'PYTHON'
import ctypes, os, resource, statistics, subprocess, sys, tempfile, time
jess, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2])
links = [w for d in ("bin", "sbin", "lib", "lib64") if os.path.islink("/" + d)
         for w in ("--symlink", os.readlink("/" + d), "/" + d)]
series = {
    "plain exec": ["/bin/true"],
    "bwrap --unshare-all": ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr",
                            "--ro-bind", "/etc", "/etc", *links, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
                            "--tmpfs", "/home/jess", "/bin/true"],
    "jess run": [jess, "run", "--", "/bin/true"],
    "jess run, landlock": [jess, "run", "--tier", "landlock", "--", "/bin/true"],
}
alone = os.path.join(os.path.dirname(jess), "jess-run")
if os.path.exists(alone):
    series["jess-run"] = [alone, "--", "/bin/true"]
    series["jess-run, landlock"] = [alone, "--tier", "landlock", "--", "/bin/true"]
PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def processor_time():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


results = {name: [] for name in series}
print("load", os.getloadavg()[0], "uid", os.getuid(), "rounds", rounds)
null = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
for turn in range(rounds + 5):
    for name, argv in series.items():
        before, start = processor_time(), time.perf_counter()
        pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=null)
        _, status = os.waitpid(pid, 0)
        wall = time.perf_counter() - start
        try:
            while True:
                os.waitpid(-1, 0)
        except ChildProcessError:
            pass
        if status != 0:
            sys.exit(f"{name}: ended with {status:#x}")
        if turn >= 5:
            results[name].append((wall * 1e3, (processor_time() - before) * 1e3))
medians = {name: [statistics.median(series) for series in zip(*runs)] for name, runs in results.items()}
for name, (wall, cpu) in medians.items():
    against = [f"x{wall / medians[other][0]:.2f} wall x{cpu / medians[other][1]:.2f} cpu of {other.split()[0]}"
               for other in ("plain exec", "bwrap --unshare-all")]
    print(f"{name:20} wall {wall:6.2f} ms  cpu {cpu:5.2f} ms ", "  ".join(against))

# The fastest of many short series: what else the machine does only ever makes one slower.
OPENS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    double best = 1e9;
    for (int round = 0; round < atoi(argv[2]); round++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < 100; i++) close(open(argv[1], O_RDONLY | O_CLOEXEC));
        clock_gettime(CLOCK_MONOTONIC, &b);
        double each = ((b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec) / 100;
        if (each < best) best = each;
    }
    printf("%.0f\n", best);
}
"""
with tempfile.TemporaryDirectory() as dir:
    opens = dir + "/opens"
    subprocess.run(["cc", "-O2", "-x", "c", "-", "-o", opens], input=OPENS.encode(), check=True)
    ways = {"no sandbox": [], **{f"tier {tier}": [jess, "run", "--tier", tier, "--ro", dir, "--"]
                                 for tier in ("full", "landlock")},
            **{f"{tier}, explain": [jess, "run", "--tier", tier, "--explain", "--ro", dir, "--"]
               for tier in ("full", "landlock")}}
    times = {name: [] for name in ways}
    for _ in range(7):
        for name, prefix in ways.items():
            many = "20" if "explain" in name else "1500"
            done = subprocess.run([*prefix, opens, "/etc/hosts", many], stdin=subprocess.DEVNULL, capture_output=True, check=True)
            times[name].append(int(done.stdout))
    for name, all in times.items():
        print(f"open and close, {name:15} {min(all)} ns  x{min(all) / min(times['no sandbox']):.2f}")

# A child's maxrss counts what it was before exec, so the supervisor's own is read while it waits.
for tier in ("full", "landlock"):
    pid = os.posix_spawn(jess, [jess, "run", "--tier", tier, "--", "sleep", "2"], os.environ, file_actions=null)
    time.sleep(1)
    with open(f"/proc/{pid}/status") as status:
        fields = dict(line.rstrip().split(":", 1) for line in status)
    print(f"supervisor, tier {tier}:", *(f"{name} {fields[name].strip()}" for name in ("VmHWM", "VmRSS", "RssAnon")))
    os.waitpid(pid, 0)
PYTHON
