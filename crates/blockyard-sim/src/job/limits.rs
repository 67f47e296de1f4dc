//! The bounds on job files and jobs, which bound the time and memory of the parser.

/// Bytes of the longest job file.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Bytes of the longest line after `${NAME}` has been expanded; fio's own limit.
pub const LINE_BYTES_MAX: usize = 8192;
/// Deepest nesting of includes.
pub const INCLUDE_DEPTH_MAX: usize = 16;
/// Most includes followed in one job file.
pub const INCLUDES_MAX: usize = 64;
/// Most options in one job file, its includes counted.
pub const SETTINGS_MAX: usize = 100_000;
/// Most sections, and most job instances, in one job file.
pub const INSTANCES_MAX: u32 = 4096;
/// Bytes of the longest I/O.
pub const BLOCK_BYTES_MAX: u32 = 1 << 30;
/// Greatest `iodepth`.
pub const DEPTH_MAX: u32 = 1 << 20;
/// Processors are numbered below this.
pub const CPUS_MAX: u64 = 4096;
/// Most files of an instance.
pub const FILES_MAX: u16 = 4096;

// [any-bytes-are-safe]: no product of two bounds may overflow where the parser multiplies them.
const _: () = assert!(LINE_BYTES_MAX <= FILE_BYTES_MAX && INCLUDE_DEPTH_MAX <= INCLUDES_MAX);
const _: () = assert!(CPUS_MAX <= 1 << 16, "processors are numbered by 16 bits");
