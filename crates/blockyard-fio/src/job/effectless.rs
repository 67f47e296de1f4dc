//! The options whose values are checked but change nothing, each with the reason.

use super::error::ValueFault;
use super::model::Job;
use super::option::{Effect, OptionDef};
use super::value::{Parsed, Value};

const NO_DATA: &str = "the simulator moves no data";
const EVERY_WRITE: &str =
    "reads are checked against every completed write, and after a power cut all synced data";
const NO_FILES: &str = "there are no files to create, keep or remove";
const NO_HISTOGRAM_LOG: &str = "no log of histograms is written";
const STREAMED: &str = "entries of logs are written immediately, as plain text";
const NO_EPOCH: &str = "virtual time begins at zero";
const NO_CLOCK: &str = "virtual time costs nothing to read";
const NO_PROCESS: &str = "no process is started";
const NO_MAP: &str = "no map is needed to reach each block once in a pass";
const NOT_PRICED: &str = "the cost of one call is part of the device's profile";
const TEXT_ONLY: &str = "it only changes how fio prints";
const ONE_PATH: &str = "commands of all kinds of device take the same path";
const NO_READ_CACHE: &str = "no modelled device has a cache that such a read would bypass";
const NO_HINT: &str = "priority hints are not modelled, and no elevator of Linux uses them";
const OBSOLETE: &str = "fio ignores it, too";
const NO_ERRORS: &str = "continue_on_error decides what an I/O error ends";

const fn ignored(
    name: &'static str,
    aliases: &'static [&'static str],
    reason: &'static str,
    apply: fn(&mut Job, Value<'_>) -> Parsed<()>,
) -> OptionDef {
    OptionDef { name, aliases, doc: "accepted, no effect", effect: Effect::NoEffect(reason), apply }
}

fn boolean(_: &mut Job, value: Value<'_>) -> Parsed<()> {
    value.boolean().map(drop)
}

fn flag(_: &mut Job, value: Value<'_>) -> Parsed<()> {
    value.flag().map(drop)
}

fn text(_: &mut Job, value: Value<'_>) -> Parsed<()> {
    value.free_text().map(drop)
}

fn text_or_nothing(_: &mut Job, value: Value<'_>) -> Parsed<()> {
    if value.text.is_some() { value.free_text().map(drop) } else { Ok(()) }
}

fn number(_: &mut Job, value: Value<'_>) -> Parsed<()> {
    value.count(0, u64::MAX).map(drop)
}

fn percent(_: &mut Job, value: Value<'_>) -> Parsed<()> {
    value.count(0, 100).map(drop)
}

/// Checks that the value is `allowed`; any other would change the I/O, and is refused with
/// `reason`.
fn only(allowed: &str, reason: &'static str, value: Value<'_>) -> Parsed<()> {
    match value.text()? {
        text if text == allowed => Ok(()),
        text => Err(ValueFault::NotModelled { text: text.to_owned(), reason }),
    }
}

fn plain_write(_: &mut Job, value: Value<'_>) -> Parsed<()> {
    only(
        "write",
        "only plain reads, writes and discards are modelled, not commands of a protocol",
        value,
    )
}

fn checked_writes(_: &mut Job, value: Value<'_>) -> Parsed<()> {
    value.word(&[("completed", ()), ("fsynced", ())])
}

fn unlocked_files(_: &mut Job, value: Value<'_>) -> Parsed<()> {
    only(
        "none",
        "a lock lets the jobs of a file submit one at a time, which is not modelled",
        value,
    )
}

fn blkio_driver(_: &mut Job, value: Value<'_>) -> Parsed<()> {
    only("io_uring", "it drives a device from user space, past the block layer", value)
}

fn device_kind(_: &mut Job, value: Value<'_>) -> Parsed<()> {
    value.word(&[("nvme", ()), ("bsg", ())])
}

pub(super) static OPTIONS: &[OptionDef] = &[
    ignored("zero_buffers", &[], NO_DATA, flag),
    ignored("refill_buffers", &[], NO_DATA, flag),
    ignored("scramble_buffers", &[], NO_DATA, boolean),
    ignored("buffer_pattern", &[], NO_DATA, text),
    ignored("buffer_compress_percentage", &[], NO_DATA, percent),
    ignored("buffer_compress_chunk", &[], NO_DATA, number),
    ignored("dedupe_percentage", &[], NO_DATA, percent),
    ignored("dedupe_mode", &[], NO_DATA, text),
    ignored("dedupe_working_set_percentage", &[], NO_DATA, percent),
    ignored("dedupe_global", &[], NO_DATA, boolean),
    ignored("mem", &["iomem"], NO_DATA, text),
    ignored("iomem_align", &["mem_align"], NO_DATA, number),
    ignored("hugepage-size", &[], NO_DATA, number),
    ignored("lockmem", &[], NO_DATA, number),
    ignored("write_hint", &[], "write life times are not modelled", text),
    ignored("do_verify", &[], NO_DATA, boolean),
    ignored("verify_policy", &[], EVERY_WRITE, checked_writes),
    ignored("verify_fatal", &[], NO_DATA, boolean),
    ignored("verify_dump", &[], NO_DATA, boolean),
    ignored("verify_interval", &[], NO_DATA, number),
    ignored("verify_offset", &[], NO_DATA, number),
    ignored("verify_pattern", &[], NO_DATA, text),
    ignored("verify_pattern_interval", &[], NO_DATA, number),
    ignored("verifysort", &[], OBSOLETE, text_or_nothing),
    ignored("verifysort_nr", &[], OBSOLETE, text_or_nothing),
    ignored("flow_watermark", &[], OBSOLETE, text_or_nothing),
    ignored("verify_state_save", &[], NO_DATA, boolean),
    ignored("verify_async", &[], NO_DATA, number),
    ignored("verify_async_cpus", &[], NO_DATA, text),
    ignored("verify_write_sequence", &[], NO_DATA, boolean),
    ignored("verify_header_seed", &[], NO_DATA, boolean),
    ignored("unlink", &[], NO_FILES, boolean),
    ignored("unlink_each_loop", &[], NO_FILES, boolean),
    ignored("create_serialize", &[], NO_FILES, boolean),
    ignored("create_fsync", &[], NO_FILES, boolean),
    ignored("create_on_open", &[], NO_FILES, boolean),
    ignored("allow_file_create", &[], NO_FILES, boolean),
    ignored("allow_mounted_write", &[], NO_FILES, boolean),
    ignored("filetype", &[], NO_FILES, text),
    ignored("lockfile", &[], NO_FILES, unlocked_files),
    ignored("unique_filename", &[], NO_FILES, boolean),
    ignored("softrandommap", &[], NO_MAP, boolean),
    ignored("threads", &[], "it belongs to one of fio's profiles; write `thread`", number),
    ignored("clocksource", &[], NO_CLOCK, text),
    ignored("gtod_reduce", &[], NO_CLOCK, boolean),
    ignored("gtod_cpu", &[], NO_CLOCK, number),
    ignored("nice", &[], NO_PROCESS, text),
    ignored("uid", &[], NO_PROCESS, number),
    ignored("gid", &[], NO_PROCESS, number),
    ignored("numa_cpu_nodes", &[], NO_PROCESS, text),
    ignored("numa_mem_policy", &[], NO_PROCESS, text),
    ignored("comm", &[], NO_PROCESS, text),
    ignored("exec_prerun", &[], NO_PROCESS, text),
    ignored("exec_postrun", &[], NO_PROCESS, text),
    ignored("ioscheduler", &[], "the elevator is part of the design", text),
    ignored("error_dump", &[], NO_ERRORS, boolean),
    ignored("ignore_error", &[], NO_ERRORS, text),
    ignored("exitall_on_error", &[], NO_ERRORS, flag),
    ignored("write_hist_log", &[], NO_HISTOGRAM_LOG, text_or_nothing),
    ignored("log_entries", &[], STREAMED, number),
    ignored("log_hist_msec", &[], NO_HISTOGRAM_LOG, number),
    ignored("log_hist_coarseness", &[], NO_HISTOGRAM_LOG, number),
    ignored("log_compression", &[], STREAMED, number),
    ignored("log_compression_cpus", &[], STREAMED, text),
    ignored("log_store_compressed", &[], STREAMED, boolean),
    ignored("log_unix_epoch", &[], NO_EPOCH, boolean),
    ignored("log_alternate_epoch", &[], NO_EPOCH, boolean),
    ignored("log_alternate_epoch_clock_id", &[], NO_EPOCH, number),
    ignored("job_start_clock_id", &[], NO_EPOCH, number),
    ignored("unit_base", &[], TEXT_ONLY, number),
    ignored("significant_figures", &[], TEXT_ONLY, number),
    ignored("disk_util", &[], TEXT_ONLY, boolean),
    ignored("block_error_percentiles", &[], TEXT_ONLY, boolean),
    ignored("stats", &[], TEXT_ONLY, boolean),
    ignored("fixedbufs", &[], NOT_PRICED, flag),
    ignored("registerfiles", &[], NOT_PRICED, flag),
    ignored("nonvectored", &[], NOT_PRICED, number),
    ignored("force_async", &[], NOT_PRICED, number),
    ignored("sg_write_mode", &[], "plain writes are the default", plain_write),
    ignored("write_mode", &[], "plain writes are the default", plain_write),
    ignored("libblkio_driver", &[], "io_uring is the only one", blkio_driver),
    ignored("libblkio_path", &[], "the device is that of the command line", text),
    ignored("libblkio_num_entries", &[], NOT_PRICED, number),
    ignored("cmd_type", &[], ONE_PATH, device_kind),
    ignored("readfua", &[], NO_READ_CACHE, boolean),
    ignored("priohint", &[], NO_HINT, number),
    ignored("cmdprio_hint", &[], NO_HINT, text),
    ignored("cgroup_nodelete", &[], "no control group is left behind", boolean),
    ignored("libaio_vectored", &[], NOT_PRICED, boolean),
    ignored("userspace_reap", &[], NOT_PRICED, flag),
];
