//! Errors and notes about jobs, each with its line.

use super::instead;
use super::limits;
use blockyard_text::words::Words;
use core::fmt;
use std::io;
use std::sync::Arc;

/// A line of a job file, or an argument of a command line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file as it was named, or `command line`.
    pub file: Arc<str>,
    /// Line in the file or argument on the command line, from 1; 0 for the file as a whole.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// A job file that cannot be run: the fault and its line ([error-names-line]).
///
/// Displayed as `FILE:LINE: message`.
#[derive(Clone, Debug, PartialEq)]
pub struct JobError {
    /// The offending line.
    pub place: Place,
    /// The fault.
    pub fault: Fault,
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.fault)
    }
}

impl core::error::Error for JobError {}

/// A remark about a job that can run, and the line of the remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line that the remark is about.
    pub place: Place,
    /// The remark.
    pub(crate) remark: Remark,
}

impl Note {
    /// Whether the note is true of a raw disk only, and not of a file on a file system.
    #[must_use]
    pub const fn is_of_raw_disks(&self) -> bool {
        matches!(self.remark, Remark::BufferedWrites | Remark::NeedsFileSystem { .. })
    }
}

/// A remark about a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remark {
    /// An option changes nothing in a simulation.
    NoEffect {
        /// The option, as the table names it.
        option: &'static str,
        /// The reason.
        reason: &'static str,
    },
    /// The job reads through the page cache by default, not by request.
    BufferedByDefault,
    /// The job writes through the page cache.
    BufferedWrites,
    /// An option matters only on a file system.
    NeedsFileSystem {
        /// The option, as the table names it.
        option: &'static str,
    },
    /// An engine runs as another one.
    RunsAs {
        /// The engine as written.
        engine: &'static str,
        /// The engine that it runs as.
        other: &'static str,
        /// In what they are alike.
        reason: &'static str,
    },
    /// A `filename` adds files to those that another one has named.
    AddsFiles,
    /// The data of the job is checked in another way than fio's.
    Verified,
    /// A pass of random I/Os ends before it has covered its region.
    EndsEarly,
    /// The units KiB, MiB and so on count 1000 bytes each.
    Thousands {
        /// The option, as the table names it.
        option: &'static str,
        /// The bytes of the first such number.
        bytes: u64,
    },
    /// A number ends at a blank, and what follows is dropped.
    Comment {
        /// The option, as the table names it.
        option: &'static str,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remark {
            Remark::NoEffect { option, reason } => {
                write!(f, "{}: `{option}` has no effect: {reason}", self.place)
            }
            Remark::RunsAs { engine, other, reason } => {
                write!(f, "{}: ioengine={engine} runs as {other}: {reason}", self.place)
            }
            Remark::EndsEarly => write!(
                f,
                "{}: as in fio, a pass ends before it has covered `size`, because blocks of several \
                 lengths share one map; `norandommap` or one length avoids it",
                self.place
            ),
            Remark::AddsFiles => write!(
                f,
                "{}: as in fio, `filename` adds to the files of the `filename` before it, and the job \
                 uses all of them",
                self.place
            ),
            Remark::Verified => write!(
                f,
                "{}: `verify` runs as --verify: reads and the final state of the device are checked, \
                 without fio's pass that reads everything again",
                self.place
            ),
            Remark::Thousands { option, bytes } => write!(
                f,
                "{}: `{option}` is {bytes} bytes: as in fio, KiB, MiB and GiB go by 1000, and k, m and g by 1024 \
                 (kb_base=1024)",
                self.place
            ),
            Remark::Comment { option } => write!(
                f,
                "{}: `{option}`: what follows the number is dropped, as in fio; comments begin with ; or #",
                self.place
            ),
            Remark::BufferedWrites => write!(
                f,
                "{}: writes go to the page cache of a raw block device: no file system and no journal is \
                 assumed (--filesystem adds them)",
                self.place
            ),
            Remark::NeedsFileSystem { option } => {
                write!(f, "{}: `{option}` has an effect only with --filesystem", self.place)
            }
            Remark::BufferedByDefault => write!(
                f,
                "{}: reads go through the page cache, as fio's do without direct=1",
                self.place
            ),
        }
    }
}

/// The part of buffered I/O that a job needs and that is not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffered {
    /// The job trims.
    Trims,
    /// The job has this engine, which does not wait for its reads.
    Engine(&'static str),
}

/// The reason why a job was refused, by the part of the input at fault.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// The file could not be read.
    Unreadable(io::ErrorKind),
    /// The file is longer than [`FILE_BYTES_MAX`](super::FILE_BYTES_MAX).
    FileTooLarge,
    /// The file holds a NUL byte or text that is not UTF-8.
    NotText,
    /// The file begins with a byte-order mark.
    ByteOrderMark,
    /// The file is UTF-16.
    Utf16,
    /// The file, or the command line, describes no job.
    NoJobs,
    /// A section that was asked for by name does not exist.
    NoSuchSection(String),
    /// The line, once expanded, is longer than [`LINE_BYTES_MAX`](super::LINE_BYTES_MAX).
    LineTooLong,
    /// More options than [`SETTINGS_MAX`](super::SETTINGS_MAX).
    TooManySettings,
    /// A section header that is not exactly `[name]`.
    BadSection,
    /// An option before the first section header.
    OutsideSection,
    /// A section header in an included file.
    SectionInInclude,
    /// Includes nested or repeated beyond the limits.
    TooManyIncludes,
    /// A file that includes itself, directly or not.
    IncludeLoop,
    /// `${NAME}` without an end, or naming a variable that is not set.
    BadVariable(String),
    /// `$ncpus` and its like, which depend on the machine that reads the file.
    MachineKeyword(&'static str),
    /// A command line argument that is not `--option` or `--option=value`.
    NotAnOption(String),
    /// An option that the table does not have.
    UnknownOption {
        /// The option as written.
        name: String,
        /// The nearest name in the table, if one is near.
        nearest: Option<&'static str>,
    },
    /// A value of an option that cannot be understood.
    Value {
        /// The option.
        option: &'static str,
        /// The fault of its value.
        fault: ValueFault,
    },
    /// An option that fio has and Blockyard does not model yet.
    Unsupported {
        /// The option.
        option: &'static str,
        /// The reason why it is not modelled.
        reason: &'static str,
    },
    /// Another job gives the control group of this one another weight.
    CgroupHasWeight {
        /// The group.
        cgroup: String,
        /// The line of the other weight.
        place: Place,
    },
    /// The jobs name more than [`CGROUPS_MAX`](super::CGROUPS_MAX) control groups.
    TooManyCgroups,
    /// An option that only other I/O engines have.
    WrongEngine {
        /// The option.
        option: &'static str,
        /// The engine of this job.
        engine: &'static str,
    },
    /// Two options that contradict each other.
    Contradiction {
        /// The option on the line.
        option: &'static str,
        /// The option that it contradicts.
        other: &'static str,
        /// The reason.
        reason: &'static str,
    },
    /// A job that would use the page cache in a way that is not modelled.
    Buffered(Buffered),
    /// More job instances than [`INSTANCES_MAX`](super::INSTANCES_MAX).
    TooManyInstances {
        /// The number of instances that the file requests up to this line.
        asked: u64,
    },
    /// A region that is smaller than one block.
    SmallerThanBlock {
        /// Bytes of a file's region.
        size_bytes: u64,
        /// The smallest block the job uses.
        block_bytes: u64,
    },
    /// The job reaches past the end of the device.
    DeviceTooSmall {
        /// The byte at which the job's region ends.
        needed_bytes: u64,
        /// Size of the device.
        device_bytes: u64,
    },
    /// The random maps of the job's instances have more than
    /// [`MAPPED_BLOCKS_MAX`](super::MAPPED_BLOCKS_MAX) blocks.
    MapTooLarge {
        /// The blocks of all maps.
        blocks: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(kind) => write!(f, "cannot read the file: {}", Words(*kind)),
            Self::FileTooLarge => {
                write!(f, "the file is larger than {} bytes", limits::FILE_BYTES_MAX)
            }
            Self::NotText => write!(f, "not a job file: binary data (NUL or invalid UTF-8)"),
            Self::ByteOrderMark => write!(
                f,
                "the file begins with a byte-order mark (U+FEFF), which fio refuses: save it without one"
            ),
            Self::Utf16 => write!(f, "the file is UTF-16: save it as UTF-8"),
            Self::NoJobs => write!(
                f,
                "no jobs: a job file needs a section such as [job1], and a command line a --name=NAME"
            ),
            Self::NoSuchSection(name) => write!(f, "there is no section [{name}]"),
            Self::LineTooLong => {
                write!(f, "the line is longer than {} bytes", limits::LINE_BYTES_MAX)
            }
            Self::TooManySettings => {
                write!(f, "more than {} options in one job file", limits::SETTINGS_MAX)
            }
            Self::BadSection => write!(f, "a section header is `[name]` and nothing else"),
            Self::OutsideSection => write!(f, "option outside of any [section]"),
            Self::SectionInInclude => write!(f, "an included file may not open a section"),
            Self::TooManyIncludes => write!(
                f,
                "includes deeper than {} or more than {}",
                limits::INCLUDE_DEPTH_MAX,
                limits::INCLUDES_MAX
            ),
            Self::IncludeLoop => write!(f, "the file includes itself"),
            Self::BadVariable(name) => {
                write!(f, "`${{{name}` names no variable that is set; set it with --env NAME=VALUE")
            }
            Self::MachineKeyword(word) => write!(
                f,
                "`{word}` depends on the machine that reads the file; write the number instead, or set \
                 it with --env {}=NUMBER",
                word.trim_start_matches('$')
            ),
            Self::NotAnOption(text) => {
                write!(
                    f,
                    "`{text}` is not an option; write --option, --option=value or --option value; the value of a flag needs the `=`"
                )
            }
            Self::UnknownOption { name, nearest } => {
                write!(f, "unknown option `{name}`")?;
                nearest.map_or(Ok(()), |nearest| write!(f, "; did you mean `{nearest}`?"))
            }
            Self::Value { option, fault } => write!(f, "`{option}`: {fault}"),
            Self::Unsupported { option, reason } => {
                write!(f, "`{option}` is not supported yet: {reason}")
            }
            Self::WrongEngine { option, engine } => {
                write!(f, "`{option}` is not an option of ioengine={engine}")
            }
            Self::CgroupHasWeight { cgroup, place } => {
                write!(f, "control group `{cgroup}` has another weight already: see {place}")
            }
            Self::TooManyCgroups => {
                write!(f, "more than {} control groups", limits::CGROUPS_MAX)
            }
            Self::Contradiction { option, other, reason } => {
                write!(f, "`{option}` contradicts `{other}`: {reason}")
            }
            Self::Buffered(Buffered::Trims) => {
                write!(f, "trims of a buffered job are not modelled; add direct=1")
            }
            Self::Buffered(Buffered::Engine(engine)) => write!(
                f,
                "buffered I/O of ioengine={engine} comes later: where it waits is not modelled; add \
                 direct=1"
            ),
            Self::TooManyInstances { asked } => write!(
                f,
                "{asked} job instances in all (numjobs); the limit is {}",
                limits::INSTANCES_MAX
            ),
            Self::SmallerThanBlock { size_bytes, block_bytes } => write!(
                f,
                "size too small: {} per file hold no block of {}",
                instead::size_words(*size_bytes),
                instead::size_words(*block_bytes)
            ),
            Self::DeviceTooSmall { needed_bytes, device_bytes } => write!(
                f,
                "device smaller than the job: the job ends at {}, the device at {}",
                instead::size_words(*needed_bytes),
                instead::size_words(*device_bytes)
            ),
            Self::MapTooLarge { blocks } => write!(
                f,
                "random blocks of several lengths: the maps of visited blocks would have {blocks} \
                 bits, and the limit is {}; set `norandommap`, a smaller `size`, or longer blocks",
                limits::MAPPED_BLOCKS_MAX
            ),
        }
    }
}

/// The fault of a value of an option.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ValueFault {
    /// `=` and a value are missing.
    Missing,
    /// White space right after `=`, which fio would take as part of the value.
    LeadingSpace,
    /// Not a number, or a number with a suffix that the option does not take.
    NotANumber(String),
    /// Not a time, or a time in a unit that fio does not have.
    NotATime(String),
    /// A number, a blank, and what looks like a comment.
    Comment,
    /// A number outside the range.
    OutOfRange {
        /// The number as written.
        text: String,
        /// Smallest value allowed.
        min: u64,
        /// Largest value allowed.
        max: u64,
    },
    /// A decimal fraction that the option does not allow.
    BadFraction {
        /// The number as written.
        text: String,
        /// The allowed fractions.
        allowed: &'static str,
    },
    /// Not one of the words the option takes.
    NotOneOf {
        /// The word as written.
        text: String,
        /// The words, separated by spaces.
        allowed: String,
    },
    /// A word that fio knows and that stands for nothing modelled.
    NotModelled {
        /// The word as written.
        text: String,
        /// The reason.
        reason: &'static str,
    },
    /// More parts than the option takes.
    TooMany {
        /// The maximum number of parts.
        max: usize,
    },
    /// A part of the value is missing.
    Incomplete(&'static str),
    /// Percentages that do not add up to 100.
    NotAHundred {
        /// Their sum.
        sum: u64,
    },
    /// A form of the value that fio has and Blockyard does not model yet.
    Unsupported(&'static str),
}

impl fmt::Display for ValueFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "needs a value: write it after `=`"),
            Self::LeadingSpace => {
                write!(f, "a blank would be a part of the value: write the value right after `=`")
            }
            Self::NotANumber(text) => {
                write!(f, "`{text}` is not a number with a known unit{}", instead::of_number(text))
            }
            Self::NotATime(text) => {
                write!(f, "`{text}` is not a time with a known unit{}", instead::of_time(text))
            }
            Self::Comment => write!(f, "a comment follows the number; comments begin with ; or #"),
            Self::OutOfRange { text, min, max } => {
                let min = instead::bound(*min, text);
                let max = instead::bound(*max, text);
                write!(f, "{text} is out of range: at least {min}, at most {max}")
            }
            Self::BadFraction { text, allowed } => write!(f, "`{text}` is not {allowed}"),
            Self::NotOneOf { text, allowed } => {
                write!(f, "`{text}` is not one of: {allowed}{}", instead::of_word(text))
            }
            Self::NotModelled { text, reason } => write!(f, "`{text}` is not modelled: {reason}"),
            Self::TooMany { max } => write!(f, "more than {max} parts"),
            Self::Incomplete(what) => write!(f, "needs {what}"),
            Self::NotAHundred { sum } => write!(f, "percentages add up to {sum}, not 100"),
            Self::Unsupported(what) => write!(f, "{what} is not supported yet"),
        }
    }
}
