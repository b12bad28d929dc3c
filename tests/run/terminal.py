"""Types at a terminal that runs the command line given, and prints what came back.

Arguments: SCRIPT COMMAND... Each line of SCRIPT is a step:
  wait TEXT   reads until TEXT was seen (10 s at most)
  type TEXT   types; \\r, \\x03 and the like are understood
  size R C    changes the window
  end         reads until the command ends, and prints its status
Before and after, the terminal's modes are compared.
"""
import fcntl, os, pty, select, struct, sys, termios, time

def resize(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

script, command = sys.argv[1], sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    resize(0, 33, 99)
    os.execvp(command[0], command)
seen = b""

def read(until):
    global seen
    end = time.time() + 20
    while time.time() < end:
        at = seen.find(until) if until else -1
        if at >= 0:
            found, seen = seen[: at + len(until)], seen[at + len(until):]
            sys.stdout.write(found.decode(errors="replace"))
            return
        if select.select([fd], [], [], 0.2)[0]:
            try:
                more = os.read(fd, 65536)
            except OSError:
                more = b""
            if not more:
                break
            seen += more
    sys.stdout.write(seen.decode(errors="replace"))
    if until:
        sys.exit(f"\nnot seen: {until!r}")
    seen = b""

for step in script.splitlines():
    verb, _, rest = step.strip().partition(" ")
    text = rest.encode().decode("unicode_escape").encode()
    if verb == "wait":
        read(text)
    elif verb == "type":
        os.write(fd, text)
    elif verb == "size":
        resize(fd, *map(int, rest.split()))
    elif verb == "modes":
        flags = termios.tcgetattr(fd)[3]
        print("modes", bool(flags & termios.ICANON), bool(flags & termios.ECHO))
    elif verb == "end":
        read(None)
        print("\nstatus", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
