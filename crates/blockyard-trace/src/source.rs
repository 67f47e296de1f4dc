//! The files of a trace.

use super::error::{Place, Position, TraceError, TraceFault};
use super::limits::PARTS_MAX;
use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The part of a per-processor file's name before the number.
const PER_CPU: &str = ".blktrace.";

/// One file of a trace, which can be read repeatedly.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) name: Arc<str>,
    bytes: Bytes,
}

#[derive(Clone, Debug)]
enum Bytes {
    File(PathBuf),
    Memory(Arc<[u8]>),
}

/// The files of a trace: one, or one for each processor.
#[derive(Clone, Debug)]
pub struct Source {
    parts: Vec<Part>,
}

impl Source {
    /// Returns the trace at `path`: a file, one of blktrace's per-processor files (`x.blktrace.0`),
    /// or the common prefix of their names (`x`). The last two name all files of the prefix.
    ///
    /// # Errors
    ///
    /// A [`TraceError`] if there is no such file, or if there are too many.
    pub fn at(path: &str) -> Result<Self, TraceError> {
        let named = Path::new(path);
        let prefix = match path.rsplit_once(PER_CPU) {
            Some((prefix, cpu)) if cpu.parse::<u16>().is_ok() => Some(prefix),
            _ if !named.is_file() => Some(path),
            _ => None,
        };
        let parts = match prefix {
            None => vec![Part::file(named)],
            Some(prefix) => per_cpu(prefix)
                .map_err(|error| whole(path, TraceFault::Unreadable(error.kind())))?,
        };
        match parts.len() {
            0 if named.is_dir() => {
                Err(whole(path, TraceFault::Unreadable(io::ErrorKind::IsADirectory)))
            }
            0 if path == "-" || named.exists() => Err(whole(path, TraceFault::NotAFile)),
            0 => Err(whole(path, TraceFault::Unreadable(io::ErrorKind::NotFound))),
            1..=PARTS_MAX => Ok(Self { parts }),
            _ => Err(whole(path, TraceFault::TooManyParts)),
        }
    }

    /// Returns a trace of `bytes` in memory, called `name`.
    #[must_use]
    pub fn memory(name: &str, bytes: &[u8]) -> Self {
        Self { parts: vec![Part { name: Arc::from(name), bytes: Bytes::Memory(Arc::from(bytes)) }] }
    }

    /// The files: at least one.
    pub(super) fn parts(&self) -> &[Part] {
        debug_assert!(!self.parts.is_empty(), "a source has a file");
        &self.parts
    }
}

/// A fault of the file as a whole.
fn whole(path: &str, fault: TraceFault) -> TraceError {
    TraceError { place: Place { file: Arc::from(path), position: Position::Whole }, fault }
}

impl Part {
    fn file(path: &Path) -> Self {
        Self {
            name: Arc::from(path.to_string_lossy().as_ref()),
            bytes: Bytes::File(path.to_owned()),
        }
    }

    /// Opens the file at its first byte.
    pub(super) fn open(&self) -> Result<Box<dyn Read>, TraceError> {
        match &self.bytes {
            Bytes::Memory(bytes) => Ok(Box::new(Cursor::new(Arc::clone(bytes)))),
            Bytes::File(path) => {
                let file = File::open(path)
                    .map_err(|error| self.fault(TraceFault::Unreadable(error.kind())))?;
                Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
            }
        }
    }

    /// Returns an error about the file as a whole.
    pub(super) fn fault(&self, fault: TraceFault) -> TraceError {
        let place = Place { file: Arc::clone(&self.name), position: Position::Whole };
        TraceError { place, fault }
    }
}

/// Returns the files `PREFIX.blktrace.N`, by ascending N.
fn per_cpu(prefix: &str) -> io::Result<Vec<Part>> {
    let prefix = Path::new(prefix);
    let folder = match prefix.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let Some(name) = prefix.file_name().map(|name| name.to_string_lossy().into_owned()) else {
        return Ok(Vec::new());
    };
    let begin = format!("{name}{PER_CPU}");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let file = entry?.file_name();
        let cpu = file.to_str().and_then(|file| file.strip_prefix(&begin)?.parse::<u16>().ok());
        if let Some(cpu) = cpu {
            found.push((cpu, prefix.with_file_name(file)));
        }
    }
    found.sort();
    Ok(found.iter().map(|(_, path)| Part::file(path)).collect())
}
