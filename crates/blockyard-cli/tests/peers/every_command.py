"""Sends every NBD command and flag through libnbd and compares with a model in memory: with and without structured
replies, and with extended headers if libnbd has them. nbdsh runs this script on NBD_URI; READ_ONLY is optional."""

import errno
import os
import random

import nbd

URI = os.environ["NBD_URI"]
READ_ONLY = "READ_ONLY" in os.environ
CONTEXT = nbd.CONTEXT_BASE_ALLOCATION


def connect(structured, extended):
    h = nbd.NBD()
    h.set_request_structured_replies(structured)
    if hasattr(h, "set_request_extended_headers"):
        h.set_request_extended_headers(extended)
    if structured:
        h.add_meta_context(CONTEXT)
    # Bad requests must reach the server instead of being refused by libnbd.
    h.set_strict_mode(0)
    h.connect_uri(URI)
    assert h.get_structured_replies_negotiated() == structured
    if extended:
        assert h.get_extended_headers_negotiated()
    return h


def fails(error, call, *arguments):
    try:
        call(*arguments)
    except nbd.Error as failure:
        assert failure.errnum == error, (call, arguments, failure)
    else:
        raise AssertionError(f"it succeeds: {call} {arguments}")


def check_flags(h, structured):
    assert h.is_read_only() == READ_ONLY
    for can in [h.can_flush, h.can_fua, h.can_trim, h.can_zero, h.can_fast_zero, h.can_cache]:
        assert can(), can
    assert h.can_multi_conn()
    assert h.can_df() == structured
    assert h.can_meta_context(CONTEXT) if structured else True


def read(h, length, offset, structured):
    """Reads in every way and asserts equal results."""
    found = bytes(h.pread(length, offset))
    if structured:
        assert h.pread(length, offset, nbd.CMD_FLAG_DF) == found
    put_together = bytearray(length)

    def chunk(part, at, state, error):
        assert state in (nbd.READ_DATA, nbd.READ_HOLE), (state, error)
        put_together[at - offset : at - offset + len(part)] = part

    h.pread_structured(length, offset, chunk)
    assert put_together == found
    return found


def status(h, length, offset, flags):
    """Returns pairs of length and state from `offset` on, at least one."""
    told = []
    h.block_status(length, offset, lambda _, at, entries, error: told.extend(entries), flags)
    pairs = list(zip(told[::2], told[1::2]))
    assert pairs and all(part > 0 for part, _ in pairs), pairs
    return pairs


def check_status(h, model):
    size = len(model)
    pairs = status(h, size, 0, 0)
    assert sum(part for part, _ in pairs) >= size, "an answer without REQ_ONE is whole"
    at = 0
    for part, state in pairs:
        if state & nbd.STATE_ZERO:
            assert not any(model[at : at + part]), (at, part)
        at += part
    one = status(h, size - 7, 7, nbd.CMD_FLAG_REQ_ONE)
    assert len(one) == 1 and one[0][0] <= size - 7, one


def do_one(h, model, rng, structured):
    """Sends a random command and updates the model."""
    size = len(model)
    offset = rng.randrange(size)
    length = min(rng.choice([1, 511, 512, 4096, 70_001]), size - offset)
    fua = rng.choice([0, nbd.CMD_FLAG_FUA])
    command = rng.randrange(6)
    if command == 0:
        data = rng.randbytes(length)
        h.pwrite(data, offset, fua)
        model[offset : offset + length] = data
    elif command == 1:
        flags = fua | rng.choice([0, nbd.CMD_FLAG_NO_HOLE]) | rng.choice([0, nbd.CMD_FLAG_FAST_ZERO])
        try:
            h.zero(length, offset, flags)
            model[offset : offset + length] = bytes(length)
        except nbd.Error as failure:
            assert flags & nbd.CMD_FLAG_FAST_ZERO and failure.errnum == errno.EOPNOTSUPP, failure
    elif command == 2:
        # After a trim each byte is old or zero, and keeps that value.
        h.trim(length, offset, fua)
        left = bytes(h.pread(length, offset))
        assert all(new in (0, old) for new, old in zip(left, model[offset : offset + length]))
        model[offset : offset + length] = left
    elif command == 3:
        h.cache(length, offset)
    elif command == 4:
        h.flush()
    else:
        assert read(h, length, offset, structured) == model[offset : offset + length]


def many_at_once(h, model):
    """Sends writes that may complete in any order."""
    pieces = [os.urandom(4096) for _ in range(64)]
    cookies = [
        h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(piece)), at * 4096)
        for at, piece in enumerate(pieces)
    ]
    while h.aio_in_flight() > 0:
        h.poll(-1)
    assert all(h.aio_command_completed(cookie) for cookie in cookies)
    model[: 64 * 4096] = b"".join(pieces)


def check_refusals(h, size, structured):
    fails(errno.EINVAL, h.pread, 10, size - 9)
    fails(errno.EINVAL, h.cache, 10, size - 9)
    # These flags belong to other commands.
    fails(errno.EINVAL, h.pread, 10, 0, nbd.CMD_FLAG_REQ_ONE)
    fails(errno.EINVAL, h.cache, 10, 0, nbd.CMD_FLAG_DF)
    if structured:
        fails(errno.EINVAL, h.block_status, 10, size - 9, lambda *_: 0)
        fails(errno.EINVAL, h.block_status, 10, 0, lambda *_: 0, nbd.CMD_FLAG_NO_HOLE)
    if READ_ONLY:
        for call in [lambda: h.pwrite(b"x", 0), lambda: h.zero(1, 0), lambda: h.trim(1, 0)]:
            fails(errno.EPERM, call)
        return
    fails(errno.ENOSPC, h.pwrite, bytes(10), size - 9)
    fails(errno.ENOSPC, h.zero, 10, size - 9)
    fails(errno.EINVAL, h.trim, 10, size - 9)
    fails(errno.EINVAL, h.pwrite, b"x", 0, nbd.CMD_FLAG_NO_HOLE)
    fails(errno.EINVAL, h.zero, 1, 0, nbd.CMD_FLAG_DF)
    fails(errno.EINVAL, h.trim, 1, 0, nbd.CMD_FLAG_FAST_ZERO)


def session(structured, extended):
    h = connect(structured, extended)
    size = h.get_size()
    check_flags(h, structured)
    model = bytearray(h.pread(size, 0))
    if not READ_ONLY:
        rng = random.Random(1)
        for _ in range(200):
            do_one(h, model, rng, structured)
        many_at_once(h, model)
    assert read(h, size, 0, structured) == model
    if structured:
        check_status(h, model)
    check_refusals(h, size, structured)
    assert h.pread(10, 0) == model[:10], "the session goes on"
    h.flush()
    h.shutdown()


KINDS = [(False, False), (True, False)]
if hasattr(nbd.NBD, "set_request_extended_headers"):
    KINDS.append((True, True))
for kind in KINDS:
    session(*kind)
print(f"{len(KINDS)} kinds of sessions")
