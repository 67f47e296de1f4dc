//! Pool sets: text files that name the parts of a pool, in PMDK's format.
//!
//! The first line is `PMEMPOOLSET`. Each other line has the size and the absolute path of a part,
//! `OPTION` with names of options, or `REPLICA`. A comment starts with `#`. The part lines after
//! `REPLICA` are those of a copy of the pool, which pools of libpmemblk cannot have.
//!
//! Every part starts with a header of its own, unless the set has the option `SINGLEHDR`. The bytes
//! of the pool are those of the first part, and then those of each other part after its header, all
//! in complete pages.

use std::ffi::OsStr;
use std::fs::{File, FileType};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The first bytes of a pool set.
const SIGNATURE: &[u8; 11] = b"PMEMPOOLSET";
/// A pool set is shorter.
const BYTES_MAX: u64 = 1 << 20;

/// The parts of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolSet {
    /// The parts, in the order of their bytes. There is at least one.
    pub parts: Vec<PoolPart>,
    /// Only the first part has a header.
    pub single_header: bool,
}

/// A part of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolPart {
    /// Bytes of the file, or `None` for all of a device DAX.
    pub bytes: Option<u64>,
    /// The absolute path of the file.
    pub path: PathBuf,
}

/// Why a pool set cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolSetError {
    /// The line with this number, counted from 1, is not as the format says.
    Malformed(usize, &'static str),
    /// The line with this number is correct, but asks for what is not supported.
    Unsupported(usize, &'static str),
    /// The set names no part.
    Empty,
}

impl core::fmt::Display for PoolSetError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Malformed(line, why) | Self::Unsupported(line, why) => {
                write!(f, "line {line} of the pool set: {why}")
            }
            Self::Empty => f.write_str("the pool set names no part"),
        }
    }
}

impl std::error::Error for PoolSetError {}

impl PoolSet {
    /// Reads the pool set at `path`. Returns `None` if the file is something else.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is a pipe or socket, or starts like a pool set and has 1 MiB or
    /// more; within, as [`Self::parse`].
    pub fn read(path: &Path) -> io::Result<Option<Result<Self, PoolSetError>>> {
        if !kind_of(path)?.is_file() {
            return Ok(None);
        }
        let file = File::open(path)?;
        let mut text = Vec::new();
        (&file).take(SIGNATURE.len() as u64).read_to_end(&mut text)?;
        if text == SIGNATURE {
            file.take(BYTES_MAX).read_to_end(&mut text)?;
            if text.len() as u64 >= BYTES_MAX {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a pool set has less than 1 MiB",
                ));
            }
        }
        Ok(Self::parse(&text))
    }

    /// Parses a file. Returns `None` if the file is not a pool set.
    ///
    /// # Errors
    ///
    /// The set is malformed or needs what is not supported. The error is the first one of the file.
    pub fn parse(text: &[u8]) -> Option<Result<Self, PoolSetError>> {
        text.starts_with(SIGNATURE).then(|| Self::parse_lines(text))
    }

    fn parse_lines(text: &[u8]) -> Result<Self, PoolSetError> {
        let mut lines = text.split(|&byte| byte == b'\n').zip(1..);
        let first = lines.next().map(|(line, _)| line);
        if first != Some(SIGNATURE) || text.len() == SIGNATURE.len() {
            return Err(PoolSetError::Malformed(1, "it is not PMEMPOOLSET alone"));
        }
        let mut set = Self::default();
        for (line, number) in lines {
            let text = line.split(|&byte| byte == b'#').next().unwrap_or_default();
            if text.is_empty() {
                continue;
            }
            if let Some(options) = text.strip_prefix(b"OPTION") {
                set.take_options(options, number)?;
            } else if let Some(replica) = text.strip_prefix(b"REPLICA") {
                return Err(match replica {
                    b"" if set.parts.is_empty() => PoolSetError::Empty,
                    b"" => PoolSetError::Unsupported(number, "pools of blocks have no REPLICA"),
                    [b' ' | b'\t', ..] => {
                        PoolSetError::Unsupported(number, "a remote REPLICA is not supported")
                    }
                    _ => PoolSetError::Malformed(number, "it is not REPLICA alone"),
                });
            } else {
                let part = parse_part(text).map_err(|why| PoolSetError::Malformed(number, why))?;
                set.parts.push(part);
            }
        }
        if set.parts.is_empty() { Err(PoolSetError::Empty) } else { Ok(set) }
    }

    fn take_options(&mut self, options: &[u8], number: usize) -> Result<(), PoolSetError> {
        let mut count = 0;
        for option in words(options) {
            count += 1;
            match option {
                b"SINGLEHDR" => self.single_header = true,
                b"NOHDRS" => {
                    let why = "the option NOHDRS is for remote pool sets";
                    return Err(PoolSetError::Malformed(number, why));
                }
                _ => return Err(PoolSetError::Malformed(number, "an unknown option")),
            }
        }
        match count {
            0 => Err(PoolSetError::Malformed(number, "OPTION without the name of an option")),
            _ => Ok(()),
        }
    }
}

/// Returns the kind of the file at `path`.
///
/// # Errors
///
/// There is none, or it is a pipe or socket. To open a pipe would wait for a writer.
pub(crate) fn kind_of(path: &Path) -> io::Result<FileType> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_fifo() || kind.is_socket() {
        let why = "a pipe or socket has no bytes";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(kind)
}

/// The words of a line, separated by spaces and tabs.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ' || byte == b'\t').filter(|word| !word.is_empty())
}

fn parse_part(line: &[u8]) -> Result<PoolPart, &'static str> {
    let mut words = words(line);
    let (size, path) = match [words.next(), words.next(), words.next()] {
        [Some(size), Some(path), None] => (size, path),
        _ => return Err("it is not the size and the path of a part"),
    };
    if !path.starts_with(b"/") || path.contains(&0) {
        return Err("the path of a part is not absolute");
    }
    let bytes = match size {
        b"AUTO" => None,
        size => Some(parse_size(size).ok_or("the size of a part is malformed, or zero")?),
    };
    Ok(PoolPart { bytes, path: PathBuf::from(OsStr::from_bytes(path)) })
}

/// Parses a size: `1024`, `4K` and `4KiB` (multiples of 1024), or `4kB` (multiples of 1000).
fn parse_size(size: &[u8]) -> Option<u64> {
    let size = str::from_utf8(size).ok()?;
    let digits = size.find(|c: char| !c.is_ascii_digit()).unwrap_or(size.len());
    let (number, unit) = size.split_at(digits);
    let factor: u64 = match unit {
        "" | "B" => 1,
        _ => power_of(unit, ["K", "M", "G", "T", "P"])
            .or_else(|| power_of(unit, ["KiB", "MiB", "GiB", "TiB", "PiB"]))
            .map(|power| 1 << (10 * power))
            .or_else(|| {
                power_of(unit, ["kB", "MB", "GB", "TB", "PB"]).map(|power| 1000_u64.pow(power))
            })?,
    };
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|&bytes| bytes > 0)
}

/// Returns the power of the unit's base: the place of `unit` among `units`, from 1.
fn power_of(unit: &str, units: [&str; 5]) -> Option<u32> {
    (1..).zip(units).find_map(|(power, prefix)| (prefix == unit).then_some(power))
}

#[cfg(test)]
mod tests {
    use super::PoolSetError::{Empty, Malformed, Unsupported};
    use super::*;

    fn parse(text: &str) -> Result<PoolSet, PoolSetError> {
        PoolSet::parse(text.as_bytes()).expect("the first line of a pool set")
    }

    #[test]
    fn sizes_have_the_units_of_iec_and_si() {
        let sizes = [
            ("4096", 4096),
            ("1B", 1),
            ("3K", 3 << 10),
            ("3MiB", 3 << 20),
            ("2G", 2 << 30),
            ("2kB", 2000),
            ("5MB", 5_000_000),
            ("1PiB", 1 << 50),
            ("1TB", 1_000_000_000_000),
        ];
        for (text, bytes) in sizes {
            assert_eq!(parse_size(text.as_bytes()), Some(bytes), "{text}");
        }
        for text in ["", "0", "0M", "-1", "+1", "1k", "1KB", "1.5M", "M", "16385P", "1MiBs"] {
            assert_eq!(parse_size(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn lines_are_parts_options_or_comments() {
        let set = parse("PMEMPOOLSET\n# parts\nOPTION SINGLEHDR\n\n20M /a # one\n\t8MiB\t/b/c\n");
        let parts = vec![part(20 << 20, "/a"), part(8 << 20, "/b/c")];
        assert_eq!(set, Ok(PoolSet { parts, single_header: true }));
        let auto = parse("PMEMPOOLSET\nAUTO /dev/dax0.0").expect("a last line without an end");
        assert_eq!((auto.parts[0].bytes, auto.single_header), (None, false));
        assert_eq!(PoolSet::parse(b"PMEMBLK\0"), None);
    }

    fn part(bytes: u64, path: &str) -> PoolPart {
        PoolPart { bytes: Some(bytes), path: path.into() }
    }

    #[test]
    fn the_first_bad_line_is_named() {
        for line in [
            "20M",
            "20M a",
            "20M /a /b",
            " ",
            "x /a",
            "OPTION",
            "OPTION X",
            "REPLICAS",
            "REPLICAx y",
        ] {
            assert_eq!(bad_line(&format!("PMEMPOOLSET\n20M /a\n{line}\n0 b\n")), Some(3), "{line}");
        }
        assert_eq!(bad_line("PMEMPOOLSET"), Some(1));
        assert_eq!(bad_line("PMEMPOOLSET \n20M /a\n"), Some(1));
        assert_eq!(bad_line("PMEMPOOLSET\nOPTION NOHDRS\n20M /a\n"), Some(2));
        for replica in ["REPLICA\n", "REPLICA host set\n"] {
            let error = parse(&format!("PMEMPOOLSET\n20M /a\n{replica}20M /b\n"));
            assert!(matches!(error, Err(Unsupported(3, _))), "{error:?}");
        }
        assert_eq!(parse("PMEMPOOLSET\n# nothing\n"), Err(Empty));
        assert_eq!(parse("PMEMPOOLSET\nREPLICA\n20M /b\n"), Err(Empty));
    }

    fn bad_line(text: &str) -> Option<usize> {
        match parse(text).expect_err(text) {
            Malformed(line, _) => Some(line),
            Unsupported(..) | Empty => None,
        }
    }
}
