//! The paths of a trace.

use std::path::PathBuf;

/// The files of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The file of [`perfetto`](super::perfetto) JSON.
    pub perfetto: Option<PathBuf>,
    /// The prefix of blktrace's files.
    pub blktrace: Option<PathBuf>,
}
