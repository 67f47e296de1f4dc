//! Detects the format of a trace from its first bytes.

use super::error::{TraceError, TraceFault};
use super::format::{blkparse, blktrace, iolog, msr};
use super::limits::LINE_BYTES_MAX;
use super::source::Part;
use super::trace_format::Format;
use std::io::Read;

/// First bytes of compressed files.
const PACKED: &[(&[u8], &str)] = &[
    (&[0x1f, 0x8b], "gzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "xz"),
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "zip"),
];

/// U+FEFF in UTF-8 and in both forms of UTF-16, which editors of Windows put at the head of a text.
const MARKS: &[&[u8]] = &[b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];

/// Detects the format of `part`.
pub(super) fn sniff(part: &Part) -> Result<Format, TraceError> {
    let mut head = Vec::new();
    let read = part.open()?.take(LINE_BYTES_MAX as u64).read_to_end(&mut head);
    read.map_err(|error| part.fault(TraceFault::Unreadable(error.kind())))?;
    of_head(&head).map_err(|fault| part.fault(fault))
}

fn of_head(head: &[u8]) -> Result<Format, TraceFault> {
    if let Some((_, packer)) = PACKED.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(TraceFault::Compressed(packer));
    }
    if MARKS.iter().any(|mark| head.starts_with(mark)) {
        return Err(TraceFault::ByteOrderMark);
    }
    if blktrace::begins_with_magic(head) {
        return Ok(Format::Blktrace);
    }
    if head.iter().all(u8::is_ascii_whitespace) {
        return Err(TraceFault::NoRecords);
    }
    let text = match core::str::from_utf8(head) {
        Ok(text) => text,
        // The last character may be cut off.
        Err(error) => core::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or(""),
    };
    if let Some(version) = iolog::version(text) {
        return version;
    }
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).take(4);
    lines
        .find_map(|line| {
            let blkparse = blkparse::looks_like(line).then_some(Format::Blkparse);
            blkparse.or_else(|| msr::looks_like(line).then_some(Format::MsrCambridge))
        })
        .ok_or(TraceFault::UnknownFormat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_named() {
        assert_eq!(of_head(b"\xef\xbb\xbffio version 2 iolog\n"), Err(TraceFault::ByteOrderMark));
        assert_eq!(of_head(b"\xff\xfef\0i\0"), Err(TraceFault::ByteOrderMark));
    }

    #[test]
    fn a_format_is_known_by_its_first_line() {
        let known: &[(&[u8], Format)] = &[
            (b"fio version 2 iolog\n", Format::IologV2),
            (b"fio version 3 iolog\r\n/dev/a add\n", Format::IologV3),
            (b"  8,0    0        2     0.000000000   100  Q  RS 8 + 8 [fio]\n", Format::Blkparse),
            (b"128166372003061629,usr,0,Read,7014609920,24576,41286\n", Format::MsrCambridge),
            (
                b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1,2\n",
                Format::MsrCambridge,
            ),
            (&[0x07, 0x74, 0x61, 0x65], Format::Blktrace),
            (&[0x65, 0x61, 0x74, 0x07], Format::Blktrace),
        ];
        for (head, format) in known {
            assert_eq!(of_head(head), Ok(*format), "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn unknown_empty_and_unsupported_files_give_different_errors() {
        assert_eq!(of_head(b""), Err(TraceFault::NoRecords));
        assert_eq!(of_head(b"[job]\nrw=read\n"), Err(TraceFault::UnknownFormat));
        assert_eq!(of_head(&[0x1f, 0x8b, 8]), Err(TraceFault::Compressed("gzip")));
        let old = of_head(b"fio version 1 iolog\n").unwrap_err();
        assert!(matches!(old, TraceFault::Version { found: 1, .. }));
    }
}
