#!/bin/sh
# What a sandbox adds to /bin/true: jess run, an equivalent bubblewrap run, and a plain exec, interleaved.
#
#   cargo build --release && benches/run.sh [JESS [ROUNDS]]
#
# Run it as an ordinary user. Prints medians of wall and processor time, their ratios, and peak memory. bubblewrap does
# not wait for its init process, so its processor time is counted too low. Needs python3 and bubblewrap.
jess=${1:-target/release/jess} rounds=${2:-200}
exec /usr/bin/python3 - "$jess" "$rounds" <<'PYTHON'
import os, statistics, sys, time
jess, rounds = sys.argv[1], int(sys.argv[2])
links = [w for d in ("bin", "sbin", "lib", "lib64") if os.path.islink("/" + d)
         for w in ("--symlink", os.readlink("/" + d), "/" + d)]
series = {
    "plain exec": ["/bin/true"],
    "bwrap --unshare-all": ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr",
                            "--ro-bind", "/etc", "/etc", *links, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
                            "--tmpfs", "/home/jess", "/bin/true"],
    "jess run": [jess, "run", "--", "/bin/true"],
}
results = {name: [] for name in series}
print("load", os.getloadavg()[0], "uid", os.getuid(), "rounds", rounds)
null = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
for turn in range(rounds + 5):
    for name, argv in series.items():
        start = time.perf_counter()
        pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=null)
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter() - start
        if status != 0:
            sys.exit(f"{name}: ended with {status:#x}")
        if turn >= 5:
            results[name].append((wall * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3))
plain = statistics.median(w for w, _ in results["plain exec"])
bwrap = statistics.median(w for w, _ in results["bwrap --unshare-all"])
for name, runs in results.items():
    wall, cpu = zip(*runs)
    median = statistics.median(wall)
    print(f"{name:20} wall {median:6.2f} ms (min {min(wall):.2f})  cpu {statistics.median(cpu):5.2f} ms  "
          f"x{median / plain:.1f} of plain  x{median / bwrap:.2f} of bwrap")
# A child's maxrss counts what it was before exec, so the supervisor's own peak is read while it waits.
pid = os.posix_spawn(jess, [jess, "run", "--", "sleep", "1"], os.environ, file_actions=null)
time.sleep(0.5)
with open(f"/proc/{pid}/status") as status:
    print("supervisor peak RSS", next(line.split(None, 1)[1].strip() for line in status if line.startswith("VmHWM")))
os.waitpid(pid, 0)
PYTHON
