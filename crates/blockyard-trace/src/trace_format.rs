//! The known formats of traces.

use std::fmt;

/// The format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// fio's iolog, version 2: waits stand between the lines.
    IologV2,
    /// fio's iolog, version 3: each line has its time.
    IologV3,
    /// blktrace's binary records, in one file per processor or in one for all.
    Blktrace,
    /// blkparse's default output.
    Blkparse,
    /// The CSV format of Microsoft Research Cambridge.
    MsrCambridge,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IologV2 => "fio iolog version 2",
            Self::IologV3 => "fio iolog version 3",
            Self::Blktrace => "blktrace",
            Self::Blkparse => "output of blkparse",
            Self::MsrCambridge => "MSR-Cambridge CSV",
        })
    }
}
