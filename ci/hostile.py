#!/usr/bin/env python3
"""Attacks a server of its own, as strangers would, while a canary client reads.

    ci/hostile.py PROGRAM [--seed N] [--sessions N] [--io ENGINE] [ATTACK...]

Each attack but `fuzz` starts `PROGRAM serve` on loopback with two exports on one lane: strangers
attack the export `prey`, and the canary reads 512 bytes at a time from the export `canary`. Then
the server's own metric says how many turns of its lane passed between the arrival of a read of the
canary and its answer. The attack fails if these are more than TURNS_MAX, if a read takes longer
than SECONDS_MAX or returns wrong bytes, or if the server does not end in order after SIGTERM.
`fuzz` runs the given number of malformed sessions, divided among plaintext, TLS, a BTT and a
modelled device. `--io` is passed to `serve`.

Exit code 0: each attack was withstood. 1: an attack succeeded; a line says which. 2: bad usage.
"""

import argparse
import os
import random
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from hostile_server import (
    CACHE,
    EXPORT_NAME,
    EXTENDED,
    GO,
    MIB,
    NO_HOLE,
    READ,
    STARTTLS,
    STATUS,
    TRIM,
    WRITE,
    ZEROES,
    Canary,
    Client,
    Server,
    Succeeded,
    extended_request,
    greeted,
    option,
    request,
    take,
)

# Where an attack gives the lane no rest, turns count the time of an I/O. There the canary reads
# from the page cache.
NO_REST = "--buffered"
# A client that reads without a pause gets at least as many answers. An idle machine gives it some
# thousands.
READS_A_SECOND_MIN = 40


def attacked(program, attack, *arguments, code=0, **prey):
    """Calls `attack`, which returns clients that stay connected while the canary reads.

    `code` is the exit code with which the server must end.
    """
    server = Server(program, *arguments, **prey)
    try:
        canary = Canary(server)
        canary.sing()
        held = attack(server)
        canary.sing()
        words = canary.report()
        for client in held:
            client.close()
        return words
    finally:
        server.end(code)


def long_write_headers(program, _):
    """64 clients send the header of a WRITE of 32 MiB, and nothing else."""

    def attack(server):
        clients = [Client(server.socket, "prey") for _ in range(64)]
        for client in clients:
            client.send(request(WRITE, 1, 0, 32 * MIB))
        return clients

    return attacked(program, attack)


def unfinished_writes(program, _):
    """Ten clients send half of a WRITE of 32 MiB."""

    def attack(server):
        clients = [Client(server.socket, "prey") for _ in range(10)]
        for client in clients:
            client.stream.settimeout(1)
            try:
                client.send(request(WRITE, 1, 0, 32 * MIB) + bytes(16 * MIB))
            except TimeoutError:
                pass  # The server takes no more of it.
        return clients

    return attacked(program, attack)


def unread_replies(program, _):
    """Eight clients ask for 64 MiB each and read nothing."""

    def attack(server):
        clients = [Client(server.socket, "prey") for _ in range(8)]
        for client in clients:
            client.send(b"".join(request(READ, at, at * MIB, MIB) for at in range(64)))
        return clients

    return attacked(program, attack)


def status_floods(program, _):
    """Eight clients ask 256 times for the status of a file with 8000 runs."""

    def attack(server):
        with open(server.file("prey"), "r+b") as file:
            file.truncate(0)
            file.truncate(64 * MIB)
            for at in range(4000):
                file.seek(at * 16384)
                file.write(b"x")
        clients = [Client(server.socket, "prey", status=True) for _ in range(8)]
        for client in clients:
            client.send(b"".join(request(STATUS, at, 0, 64 * MIB) for at in range(256)))
        return clients

    return attacked(program, attack, NO_REST)


def whole_disk_zeroes(program, _):
    """Four clients ask 20 times to write zeroes over a whole disk in memory, and to discard it."""

    def attack(server):
        clients = [Client(server.socket, "prey") for _ in range(4)]
        for client in clients:
            client.send(b"".join(request(ZEROES, at, 0, 512 * MIB, NO_HOLE) for at in range(20)))
            client.send(b"".join(request(TRIM, at, 0, 512 * MIB) for at in range(20)))
        return clients

    return attacked(program, attack, NO_REST, prey="memory:512m")


def whole_btt_zeroes(program, _):
    """Four clients ask 48 times to write zeroes over a whole BTT."""

    def attack(server):
        clients = [Client(server.socket, "prey") for _ in range(4)]
        for client in clients:
            client.send(b"".join(request(ZEROES, at, 0, client.size) for at in range(48)))
        return clients

    return attacked(program, attack, "--btt", prey_bytes=256 * MIB)


def whole_disk_cache(program, _):
    """Four clients ask 256 times to prefetch a file of 2 GiB."""

    def attack(server):
        clients = [Client(server.socket, "prey") for _ in range(4)]
        for client in clients:
            client.send(b"".join(request(CACHE, at, 0, client.size) for at in range(256)))
        return clients

    return attacked(program, attack, "--buffered", prey_bytes=2048 * MIB)


def stopped_readers(program, _):
    """Eight clients with structured replies ask for data and status, and stop within the first reply."""

    def attack(server):
        clients = [Client(server.socket, "prey", status=True) for _ in range(8)]
        for client in clients:
            client.send(b"".join(request(READ, at, at * MIB, MIB // 4) for at in range(60)))
            client.send(b"".join(request(STATUS, at, 0, 64 * MIB) for at in range(60)))
            take(client.stream, 100)
        return clients

    return attacked(program, attack)


def slow_options(program, _):
    """Connections of one user that send an option byte by byte, as many as the server has room for."""
    server = Server(program, "--max-connections=64")
    slow = []
    try:
        for _ in range(3):
            for _ in range(60):
                slow.append(greeted(server.socket))
            for byte in option(GO, bytes(200))[:100]:
                for stream in slow:
                    try:
                        stream.send(bytes([byte]))
                    except OSError:
                        pass  # The server cuts off the oldest.
            canary = Canary(server)
            canary.sing()
            canary.client.close()
        return canary.report()
    finally:
        for stream in slow:
            stream.close()
        server.end()


def truncated_file(program, _):
    """The file of an export is truncated while four clients read and write it."""

    def attack(server):
        clients = [Client(server.socket, "prey") for _ in range(4)]
        for client in clients:
            for at in range(64):
                client.send(request(READ, at, at * MIB, 4096))
                client.send(request(WRITE, at, at * MIB + 65536, 4096) + bytes(4096))
        os.truncate(server.file("prey"), MIB)
        time.sleep(0.5)  # Writes that were under way may have made the file long again.
        os.truncate(server.file("prey"), MIB + 100)
        client = Client(server.socket, "prey")
        for offset in (MIB, 2 * MIB, 63 * MIB):
            if client.write(offset, bytes(4096)) == 0:
                raise Succeeded("a write beyond the end of a truncated file was answered as done")
        if os.path.getsize(server.file("prey")) != MIB + 100:
            raise Succeeded("a write made a truncated file long again")
        return [*clients, client]

    return attacked(program, attack)


def truncated_btt(program, _):
    """The file of a BTT is truncated while four clients read and write it."""

    def attack(server):
        clients = [Client(server.socket, "prey") for _ in range(4)]
        for client in clients:
            for at in range(32):
                client.send(request(READ, at, at * MIB, 4096))
                client.send(request(WRITE, at, at * MIB, 4096) + bytes(4096))
        os.truncate(server.file("prey"), MIB)
        client = Client(server.socket, "prey")
        if client.write(32 * MIB, bytes(4096)) == 0:
            raise Succeeded("a write to a truncated BTT was answered as done")
        return [*clients, client]

    return attacked(program, attack, "--btt", code=1)  # The last flush fails.


def control_socket(program, _):
    """Callers of the control socket that are silent, send what is no command, or never read an answer."""
    lines = [b"{", b"[]\n", b'{"command":"list","x":1}\n', b"\xff\n", bytes(100_000), b"[" * 60_000 + b"\n"]

    def attack(server):
        callers = [server.caller() for _ in range(20)]
        for line in lines * 4:
            callers.append(server.caller())
            try:
                callers[-1].sendall(line)
            except OSError:
                pass  # The server hangs up after a line that is too long.
        server.listens_to_operator()
        for _ in range(8):
            callers.append(server.caller())
            callers[-1].setblocking(False)
            try:
                for _ in range(1000):
                    callers[-1].send(b"{}\n" * 1000)
            except OSError:
                pass  # The server reads no more.
        server.listens_to_operator()
        return callers

    return attacked(program, attack)


def client_certificates(program, _):
    """Handshakes of TLS that stop, plaintext in place of TLS, and clients without the right certificate."""
    folder = tempfile.TemporaryDirectory(prefix="blockyard-hostile-")
    arguments = tls_options(folder.name)
    own, stranger = (authority(folder.name, name) for name in ("own", "stranger"))
    arguments.append(f"--tls-client-ca={own[0]}")
    offering = [program, "serve", "memory:1m", f"--nbd=unix:{folder.name}/s", *arguments, "--tls=offer"]
    if subprocess.run(offering, capture_output=True, timeout=20, check=False).returncode == 0:
        raise Succeeded("a server with a client CA offers plaintext")
    server = Server(program, *arguments)
    held = []
    try:
        canary = Canary(server, Client(server.socket, "canary", tls=tls_context(*own[1:])))
        canary.sing()
        for round in range(40):
            stream = greeted(server.socket)
            stream.sendall(option(STARTTLS))
            take(stream, 20)
            hello = client_hello()
            stream.sendall([hello[: 1 + round * 5], hello, option(EXPORT_NAME, b"prey")][round % 3])
            held.append(stream)
        for certificate in (), stranger[1:]:
            try:
                Client(server.socket, "prey", tls=tls_context(*certificate))
            except OSError:
                continue
            raise Succeeded("a client without the right certificate enters")
        try:
            Client(server.socket, "prey")
            raise Succeeded("a client without TLS enters")
        except OSError:
            pass
        canary.sing()
        return canary.report()
    finally:
        for stream in held:
            stream.close()
        server.end()
        folder.cleanup()


def silent_connections(program, _):
    """Connections that never choose an export, as many as the server has room for."""
    server = Server(program, "--max-connections=64")
    silent = []
    try:
        for _ in range(3):
            for _ in range(200):
                stream = socket.socket(socket.AF_UNIX)
                stream.settimeout(5)
                stream.connect(server.socket)
                silent.append(stream)
            canary = Canary(server)
            canary.sing()
        return canary.report()
    finally:
        for stream in silent:
            stream.close()
        server.end()


def silent_metrics_peers(program, _):
    """Ten connections to the metrics port that ask for nothing: /healthz answers."""
    server = Server(program)
    try:
        address = server.metrics_address()
        silent = [socket.create_connection(address) for _ in range(10)]
        words = server.health()
        for stream in silent:
            stream.close()
        return words
    finally:
        server.end()


def silent_readers(program, _):
    """Forty connections to the metrics port that ask for the metrics of 300 exports, and do not read them."""
    server = Server(program, *(f"--export=null{at}=null:1m" for at in range(300)))
    silent = []
    try:
        address = server.metrics_address()
        canary = Canary(server)
        canary.sing()
        for _ in range(40):
            stream = socket.socket()
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stream.settimeout(20)
            stream.connect(address)
            try:
                stream.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            except ConnectionError:
                pass  # The server makes room for others.
            silent.append(stream)
        words = server.health()
        canary.sing()
        return f"{words}, {canary.report()}"
    finally:
        for stream in silent:
            stream.close()
        server.end()


def descriptors(program, _):
    """A stranger opens more sessions than the server may have files: the operator is answered, and the log says why."""

    def attack(server):
        clients = []
        for _ in range(300):
            try:
                clients.append(Client(server.socket, "prey"))
            except ConnectionError:
                pass  # The server refuses it, and does not let it wait.
        if len(clients) == 300:
            raise Succeeded("300 clients are admitted with 256 open files")
        server.command("list")
        server.health()
        server.page("/metrics")
        server.wait_for(lambda: "too many" in server.words())
        return clients

    return attacked(program, attack, files=256)


def requeue(program, _):
    """The operator sets a rule that gives each request of `prey` back for ever, and later removes it."""
    server = Server(program, NO_REST, "--fault=none")
    try:
        canary = Canary(server)
        canary.sing()
        clients = [Client(server.socket, "prey") for _ in range(4)]
        server.command("fault", "prey", "requeue = true")
        for client in clients:
            client.send(b"".join(request(READ, at, at * 4096, 4096) for at in range(16)))
        canary.sing()
        words = canary.report()
        server.command("fault", "prey", "none")
        for client in clients:
            for _ in range(16):
                if client.answer():
                    raise Succeeded("a request that was given back has failed")
                take(client.stream, 4096)
            client.close()
        return words
    finally:
        server.end()


def hellos(program, _):
    """A peer begins TLS handshakes as fast as it can, which take a signature of RSA and 4096 bits each."""
    is_over = threading.Event()
    with tempfile.TemporaryDirectory(prefix="blockyard-hostile-") as folder:
        server = Server(program, *tls_options(folder, bits=4096)[:2], "--tls=offer")
        try:
            canary = Canary(server)
            canary.sing()
            with ThreadPoolExecutor(1) as threads:
                begun = threads.submit(handshakes, server.socket, is_over)
                try:
                    start = time.monotonic()
                    rounds = 0
                    while time.monotonic() - start < 5 or rounds < 100:
                        canary.sing(20)
                        rounds += 20
                    rate = rounds / (time.monotonic() - start)
                finally:
                    is_over.set()
                count = begun.result()
            if rate < READS_A_SECOND_MIN:
                raise Succeeded(f"the canary got {rate:.0f} reads a second beside {count} handshakes")
            return f"{rate:.0f} reads a second, {count} handshakes, {canary.report()}"
        finally:
            server.end()


def handshakes(path, is_over):
    """Begins handshakes over 16 connections at a time until the attack is over.

    Returns how many the server answered.
    """
    hello, count = client_hello(), 0
    while not is_over.is_set():
        streams = [greeted(path) for _ in range(16)]
        for stream in streams:
            stream.sendall(option(STARTTLS))
        for stream in streams:
            take(stream, 20)
            stream.sendall(hello)
        for stream in streams:
            try:
                take(stream, 1)  # The answer has the signature.
                count += 1
            except OSError:
                pass  # On a busy machine, the time for a handshake is over first.
            stream.close()
    return count


def ranges(program, _):
    """Clients ask for TRIM and WRITE_ZEROES of whole disks of exabytes and terabytes, and leave; then SIGTERM comes."""
    words = []
    for prey, size in (f"null:{1 << 62}", 1 << 62), ("memory:4t", 4 << 40):

        def attack(server, size=size):
            clients = [Client(server.socket, "prey", extended=True) for _ in range(8)]
            for client in clients:
                for at in range(16):
                    client.send(extended_request(TRIM, at, 0, size) + extended_request(ZEROES, at, 0, size))
                client.close()
            return [Client(server.socket, "prey")]

        start = time.monotonic()
        words.append(attacked(program, attack, NO_REST, "--drain-timeout=12s", prey=prey))
        words.append(f"{time.monotonic() - start:.1f} s")
    return ", ".join(words)


def signals(program, _):
    """Signals that end other programs: SIGUSR2 and SIGALRM do nothing, and SIGQUIT ends the server as SIGTERM does."""
    ignored = signal.SIGUSR2, signal.SIGALRM
    server = Server(program)
    try:
        canary = Canary(server)
        for _ in range(100):
            for number in ignored:
                server.process.send_signal(number)
            canary.sing(1)
        for number in ignored:
            server.wait_for(lambda name=number.name: name in server.words())
            if server.words().count(number.name) != 1:
                raise Succeeded(f"the log has more than a line for {number.name}")
        return canary.report()
    finally:
        server.end(by=signal.SIGQUIT)


def full_log(program, _):
    """Nobody reads the server's standard error, which is a full pipe; SIGTERM ends the server."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, bytes(4096))
    except BlockingIOError:
        os.set_blocking(writer, True)
    server = Server(program, "--drain-timeout=2s", stderr=writer)
    start = time.monotonic()
    Client(server.socket, "prey").stream.close()
    server.end()
    os.close(reader)
    os.close(writer)
    return f"ended in {time.monotonic() - start:.1f} s"


def fuzz(program, options):
    """Malformed sessions against plaintext, TLS, a BTT and a modelled device, at the same time."""
    with tempfile.TemporaryDirectory(prefix="blockyard-hostile-") as folder, ThreadPoolExecutor() as threads:
        kinds = {"plaintext": [], "TLS": tls_options(folder), "BTT": ["--btt"], "--as": ["--as=sd-hs"]}
        sessions = options.sessions // len(kinds)
        each = [threads.submit(fuzz_kind, program, options.seed, sessions, *kind) for kind in kinds.items()]
        for one in each:
            one.result()
    return f"{sessions} sessions each of {', '.join(kinds)}"


def fuzz_kind(program, seed, sessions, kind, arguments):
    draw = random.Random(f"{seed} {kind}")
    tls = tls_context() if kind == "TLS" else None
    server = Server(program, *arguments, lanes="auto")
    try:
        for _ in range(sessions):
            session(server.socket, draw, tls)
        Client(server.socket, "prey", tls=tls).read(0, 512)
    finally:
        server.end()


def tls_options(folder, bits=2048):
    key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", f"rsa:{bits}", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
        + ["-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    return [f"--tls-cert={certificate}", f"--tls-key={key}", "--tls=require"]


def authority(folder, name):
    """Returns the certificate of a new authority, and a certificate that it has signed, with its key."""
    paths = [os.path.join(folder, f"{name}-{what}.pem") for what in ("ca", "ca-key", "cert", "key")]
    ca, ca_key, certificate, key = paths
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={name}"]
    signed = ["-CA", ca, "-CAkey", ca_key, "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run([*new, "-keyout", ca_key, "-out", ca], check=True, capture_output=True)
    subprocess.run([*new, *signed, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return ca, certificate, key


def tls_context(*certificate):
    """Returns the context of a client with this certificate and key, if any."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(*certificate)
    return context


def client_hello():
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        tls_context().wrap_bio(received, sent).do_handshake()
    except ssl.SSLWantReadError:
        return sent.read()


def session(path, draw, tls):
    """One session: a valid one of which some bytes are changed, repeated or missing."""
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(0.2)
    try:
        stream.connect(path)
        stream.send(struct.pack(">I", 3))
        if tls and draw.random() < 0.9:
            take(stream, 18)
            stream.send(option(STARTTLS))
            take(stream, 20)
            if draw.random() < 0.9:
                stream = tls.wrap_socket(stream)
        stream.send(mutated(script(draw), draw))
        if draw.random() < 0.1:
            stream.recv(1 << 16)
    except (OSError, ValueError):
        pass  # The server may close the connection at any byte.
    finally:
        stream.close()


def script(draw):
    options = b"".join(option(draw.choice([3, 6, 8, 9, 10])) for _ in range(draw.randrange(3)))
    is_extended = draw.random() < 0.3
    go = struct.pack(">I", 4) + b"prey" + bytes(2)
    enter = option(EXTENDED) + option(GO, go) if is_extended else option(EXPORT_NAME, b"prey")
    requests = b""
    for cookie in range(draw.randrange(8)):
        kind = draw.randrange(9)
        length = draw.choice([0, 1, 511, 512, 4096, 65536])
        offset, flags = draw.randrange(64 * MIB), draw.choice([0, 0, 1, 2, 4, 8])
        if is_extended:
            named = draw.choice([length, length, 1 << 30, 1 << 63])
            requests += extended_request(kind, cookie, offset, named, flags)
        else:
            requests += request(kind, cookie, offset, length, flags)
        if kind == WRITE:
            requests += bytes(length)
    return options + enter + requests


def mutated(data, draw):
    data = bytearray(data)
    for _ in range(draw.randrange(4)):
        at = draw.randrange(len(data) + 1)
        match draw.randrange(4):
            case 0:
                data[at : at + 1] = bytes([draw.randrange(256)])
            case 1:
                del data[at : at + draw.randrange(1, 16)]
            case 2:
                data[at:at] = draw.randbytes(draw.randrange(1, 32))
            case 3:
                del data[at:]
        if not data:
            break
    return bytes(data)


ATTACKS = [
    long_write_headers,
    unfinished_writes,
    unread_replies,
    status_floods,
    whole_disk_zeroes,
    whole_btt_zeroes,
    whole_disk_cache,
    stopped_readers,
    slow_options,
    truncated_file,
    truncated_btt,
    control_socket,
    client_certificates,
    silent_connections,
    silent_metrics_peers,
    silent_readers,
    descriptors,
    requeue,
    hellos,
    ranges,
    signals,
    full_log,
    fuzz,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("attack", nargs="*", choices=[[], *(attack.__name__ for attack in ATTACKS)])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sessions", type=int, default=50_000)
    parser.add_argument("--io", metavar="ENGINE", choices=["auto", "uring", "threads"])
    options = parser.parse_intermixed_args()
    if options.io:
        Server.engine = [f"--io={options.io}"]
    failed = 0
    for attack in ATTACKS:
        if options.attack and attack.__name__ not in options.attack:
            continue
        start = time.monotonic()
        try:
            words = attack(options.program, options)
            print(f"{attack.__name__}: withstood: {words} ({time.monotonic() - start:.0f} s)", flush=True)
        except (Succeeded, OSError) as error:
            failed += 1
            print(f"{attack.__name__}: FAILED: {error}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
