"""A server under attack, its clients, and the canary: see hostile.py."""

import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

# While an I/O of the canary is at the disk, each completion for another client may begin a turn of
# the lane.
TURNS_MAX = 64
SECONDS_MAX = 2.0
# The control socket serves four connections at a time, and lets an idle one go after a second if
# others wait.
OPERATOR_SECONDS_MAX = 60
MIB = 1 << 20
READ, WRITE, TRIM, CACHE, ZEROES, STATUS = 0, 1, 4, 5, 6, 7
NO_HOLE = 2
EXPORT_NAME, STARTTLS, GO, STRUCTURED, SET_CONTEXT, EXTENDED = 1, 5, 7, 8, 10, 11


class Succeeded(Exception):
    """The attack succeeded."""


def request(kind, cookie, offset, length, flags=0):
    return struct.pack(">IHHQQI", 0x25609513, flags, kind, cookie, offset, length)


def extended_request(kind, cookie, offset, length, flags=0):
    return struct.pack(">IHHQQQ", 0x21E41C71, flags, kind, cookie, offset, length)


def option(number, data=b""):
    return b"IHAVEOPT" + struct.pack(">II", number, len(data)) + data


def take(stream, length):
    data = bytearray()
    while len(data) < length:
        more = stream.recv(length - len(data))
        if not more:
            raise ConnectionError("the server closed the connection")
        data += more
    return bytes(data)


def greeted(path):
    """Connects and takes the greeting; options may follow."""
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(20)
    stream.connect(path)
    take(stream, 18)
    stream.sendall(struct.pack(">I", 3))
    return stream


class Client:
    """A client of one export, with simple replies or, for `status`, structured ones. `tls` is the
    context of TLS.

    An `extended` client has headers with lengths of 64 bits, and sends only.
    """

    def __init__(self, path, export, status=False, tls=None, extended=False):
        self.stream = greeted(path)
        self.stream.settimeout(60)
        if tls:
            self.option(STARTTLS, b"")
            self.stream = tls.wrap_socket(self.stream)
        name = export.encode()
        if status:
            self.option(STRUCTURED, b"")
            context = b"base:allocation"
            query = struct.pack(">II", 1, len(context)) + context
            self.option(SET_CONTEXT, struct.pack(">I", len(name)) + name + query)
        if extended:
            self.option(EXTENDED, b"")
            self.option(GO, struct.pack(">I", len(name)) + name + bytes(2))
            return
        self.stream.sendall(option(EXPORT_NAME, name))
        self.size, _ = struct.unpack(">QH", take(self.stream, 10))

    def close(self):
        self.stream.close()

    def option(self, number, data):
        self.stream.sendall(option(number, data))
        while True:
            _, _, kind, length = struct.unpack(">QIII", take(self.stream, 20))
            take(self.stream, length)
            if kind == 1:
                return
            if kind >= 1 << 31:
                raise Succeeded(f"option {number} was refused")

    def send(self, data):
        self.stream.sendall(data)

    def answer(self):
        """Receives a simple reply. Returns its error, 0 for none."""
        magic, error, _ = struct.unpack(">IIQ", take(self.stream, 16))
        if magic != 0x67446698:
            raise Succeeded(f"a reply begins with {magic:x}")
        return error

    def read(self, offset, length):
        self.send(request(READ, 1, offset, length))
        error = self.answer()
        if error:
            raise Succeeded(f"a read ended with error {error}")
        return take(self.stream, length)

    def write(self, offset, data):
        """Writes, and returns the error, 0 for none."""
        self.send(request(WRITE, 1, offset, len(data)) + data)
        return self.answer()


class Server:
    """`PROGRAM serve` in a folder of its own. The export `prey` is a file unless `prey` names
    another disk.

    `lanes` is the option, and `files` the limit of open files, if any.
    """

    engine = []  # The options that choose the engine.

    def __init__(self, program, *arguments, prey=None, prey_bytes=64 * MIB, stderr=None, lanes="1", files=None):
        self.program = program
        self.folder = tempfile.mkdtemp(prefix="blockyard-hostile-")
        self.socket = os.path.join(self.folder, "s")
        self.control = os.path.join(self.folder, "c")
        self.log = os.path.join(self.folder, "log")
        for name, size in ("prey", prey_bytes), ("canary", 64 * MIB):
            if "--btt" in arguments:
                create = [program, "btt", "create", self.file(name), f"--size={size}"]
                subprocess.run(create, check=True, capture_output=True)
            else:
                with open(self.file(name), "wb") as file:
                    file.truncate(size)
        disks = [f"--export=prey={prey or self.file('prey')}", f"--export=canary={self.file('canary')}"]
        sockets = [f"--nbd=unix:{self.socket}", f"--control={self.control}", "--metrics=127.0.0.1:0"]
        limit = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh"] if files else []
        chosen = [f"--pidfile={self.file('pid')}", f"--lanes={lanes}", *self.engine]
        arguments = [*limit, program, "serve", *disks, *sockets, *chosen, *arguments]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(arguments, stderr=stderr or log, stdout=subprocess.DEVNULL)
        self.wait_for(lambda: os.path.exists(self.file("pid")))

    def file(self, name):
        return os.path.join(self.folder, name)

    def wait_for(self, condition):
        until = time.monotonic() + 20
        while not condition():
            if self.process.poll() is not None or time.monotonic() > until:
                raise Succeeded("the server ended, or did nothing for 20 s: " + self.words()[-1000:])
            time.sleep(0.01)

    def words(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def page(self, path):
        """Returns a page of the metrics port."""
        host, port = self.metrics_address()
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=20) as answer:
            return answer.read().decode()

    def health(self):
        """Asks for /healthz, which must answer soon. Returns the time that it took, as text."""
        start = time.monotonic()
        self.page("/healthz")
        took = time.monotonic() - start
        if took > SECONDS_MAX:
            raise Succeeded(f"/healthz took {took:.3f} s")
        return f"/healthz in {took * 1000:.1f} ms"

    def metrics_address(self):
        self.wait_for(lambda: "metrics at" in self.words())
        host, port = re.search(r"http://([0-9.]+):([0-9]+)/", self.words()).groups()
        return host, int(port)

    def command(self, *words):
        """Gives a command by `ctl`, which must succeed."""
        call = [self.program, "ctl", "--timeout=20s", self.control, *words]
        done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise Succeeded(f"ctl {words[0]} failed: {done.stderr}")

    def caller(self):
        """Connects to the control socket."""
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(OPERATOR_SECONDS_MAX)
        stream.connect(self.control)
        return stream

    def listens_to_operator(self):
        """Fails unless an operator gets an answer in time."""
        until = time.monotonic() + OPERATOR_SECONDS_MAX
        while time.monotonic() < until:
            with self.caller() as stream:
                try:
                    stream.sendall(b'{"command":"list"}\n')
                    if b"canary" in stream.recv(1 << 16):
                        return
                except OSError:
                    pass  # All connections are busy.
            time.sleep(0.1)
        raise Succeeded("an operator gets no answer")

    def end(self, expected=0, by=signal.SIGTERM):
        """Ends the server, which must exit with the code `expected`."""
        self.process.send_signal(by)
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Succeeded(f"the server does not end after {by.name}") from None
        finally:
            words = self.words()
            shutil.rmtree(self.folder)
        if code != expected:
            raise Succeeded(f"the server ended with {code}: {words[-1000:]}")


class Canary:
    """Reads while an attack runs, and then says how it was treated."""

    def __init__(self, server, client=None):
        self.server = server
        self.client = client or Client(server.socket, "canary")
        self.bytes = random.Random(1).randbytes(MIB)
        self.client.write(0, self.bytes)
        self.slowest = 0.0

    def sing(self, rounds=100):
        for at in range(rounds):
            offset = at * 512
            start = time.monotonic()
            data = self.client.read(offset, 512)
            self.slowest = max(self.slowest, time.monotonic() - start)
            if data != self.bytes[offset : offset + 512]:
                raise Succeeded("the canary read wrong bytes")

    def report(self):
        pattern = r'blockyard_answer_turns_max\{device="canary"\} (\d+)'
        turns = int(re.search(pattern, self.server.page("/metrics")).group(1))
        if self.slowest > SECONDS_MAX or turns > TURNS_MAX:
            raise Succeeded(f"a read of the canary took {self.slowest:.3f} s and {turns} turns")
        return f"slowest read {self.slowest * 1000:.1f} ms, {turns} turns"
