//! The letters by which blkparse and the kernel print an operation.
//!
//! ```text
//! [F] R|W|D|N [F] [A] [S] [M]     flush before; read, write, discard, none; FUA, ahead, sync, meta
//! ```

use super::super::error::TraceFault;
use super::fields::clip;
use blockyard::bio::{Flags, Op};

/// Parses `letters`; `None` if they are not block I/O. `empty`: the entry has no range.
pub(super) fn parse(letters: &str, empty: bool) -> Result<Option<(Op, Flags)>, TraceFault> {
    let mut rest = letters;
    let mut flags = Flags::NONE;
    if let Some(after) = rest.strip_prefix('F') {
        (rest, flags) = (after, Flags::PREFLUSH);
    }
    let mut op = match rest.bytes().next() {
        Some(b'R') => Some(Op::Read),
        Some(b'W') => Some(Op::Write),
        Some(b'D') => Some(Op::Discard),
        Some(b'N') => None,
        // Only a flush, which has no range: some kernels leave out the letter of the operation.
        _ if empty && flags.contains(Flags::PREFLUSH) => {
            return Ok(Some((Op::Flush, sync_of(rest))));
        }
        _ => return Err(unknown(letters)),
    };
    for letter in rest.bytes().skip(1) {
        match letter {
            b'F' => flags |= Flags::FUA,
            b'S' => flags |= Flags::SYNC,
            b'M' => flags |= Flags::META,
            b'E' if op == Some(Op::Discard) => op = Some(Op::SecureErase),
            // Read-ahead is an ordinary read. Barriers no longer exist; they flushed on both sides.
            b'A' => {}
            b'B' => flags |= Flags::PREFLUSH | Flags::FUA,
            _ => return Err(unknown(letters)),
        }
    }
    if empty {
        let flush = flags.contains(Flags::PREFLUSH);
        return Ok(flush.then(|| (Op::Flush, flags.without(Flags::PREFLUSH | Flags::FUA))));
    }
    debug_assert!(op != Some(Op::Flush), "a flush has returned above");
    if op != Some(Op::Write) {
        flags = flags.without(Flags::PREFLUSH | Flags::FUA);
    }
    Ok(op.map(|op| (op, flags)))
}

/// The fault of letters that are no operation with its flags.
fn unknown(letters: &str) -> TraceFault {
    TraceFault::Value {
        field: "operation",
        found: clip(letters),
        expected: "one of R, W, D and N after an optional F, then any of F, A, B, E, S and M",
    }
}

fn sync_of(letters: &str) -> Flags {
    if letters.contains('S') { Flags::SYNC } else { Flags::NONE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_as_they_are_written() {
        let sync = Flags::SYNC;
        let fua = Flags::FUA;
        let preflush = Flags::PREFLUSH;
        for (letters, empty, expected) in [
            ("R", false, Some((Op::Read, Flags::NONE))),
            ("RAM", false, Some((Op::Read, Flags::META))),
            ("WS", false, Some((Op::Write, sync))),
            ("WFS", false, Some((Op::Write, sync | fua))),
            ("FWFSM", false, Some((Op::Write, sync | fua | preflush | Flags::META))),
            ("FWS", true, Some((Op::Flush, sync))),
            ("FNS", true, Some((Op::Flush, sync))),
            ("FS", true, Some((Op::Flush, sync))),
            ("F", true, Some((Op::Flush, Flags::NONE))),
            ("D", false, Some((Op::Discard, Flags::NONE))),
            ("DE", false, Some((Op::SecureErase, Flags::NONE))),
            ("N", false, None),
            ("R", true, None),
        ] {
            assert_eq!(parse(letters, empty), Ok(expected), "{letters}");
        }
        for wrong in ["", "X", "Rx", "SW", "8", "F", "FS"] {
            assert!(parse(wrong, false).is_err(), "{wrong}");
        }
    }
}
