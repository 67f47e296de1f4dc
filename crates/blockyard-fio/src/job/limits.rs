//! The limits on job files and jobs. They bound the time and memory of the parser.

/// Maximum length of a job file, bytes.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Maximum length of a line after expansion of `${NAME}`, bytes: fio's own limit.
pub const LINE_BYTES_MAX: usize = 8192;
/// Maximum nesting depth of includes.
pub const INCLUDE_DEPTH_MAX: usize = 16;
/// Maximum number of includes in one job file.
pub const INCLUDES_MAX: usize = 64;
/// Maximum number of options in one job file, including its includes.
pub const SETTINGS_MAX: usize = 100_000;
/// Maximum number of sections, and of job instances, in one job file.
pub const INSTANCES_MAX: u32 = 4096;
/// Maximum length of an I/O, bytes.
pub const BLOCK_BYTES_MAX: u32 = 1 << 30;
/// Maximum `iodepth`.
pub const DEPTH_MAX: u32 = 1 << 20;
/// Processor numbers are below this limit.
pub const CPUS_MAX: u64 = 4096;
/// Maximum number of control groups: as many as an elevator tells apart.
pub const CGROUPS_MAX: u32 = 15;
/// Maximum number of files of an instance.
pub const FILES_MAX: u16 = 4096;
/// Maximum number of blocks in the random maps of a job, which take a bit for each: 1 GiB.
pub const MAPPED_BLOCKS_MAX: u64 = 1 << 33;

// [any-bytes-are-safe]: no product of two bounds may overflow where the parser multiplies them.
const _: () = assert!(LINE_BYTES_MAX <= FILE_BYTES_MAX && INCLUDE_DEPTH_MAX <= INCLUDES_MAX);
const _: () = assert!(CPUS_MAX <= 1 << 16, "processors are numbered by 16 bits");
