//! The options that would change what is measured and are not modelled yet.

use super::option::{Effect, OptionDef};

const OTHER_PASS: &str = "a second kind of pass over the data is not modelled";
const ZONES: &str = "zoned devices are not modelled";
const TARGETS: &str = "jobs do not adapt to what they measure";
const REPLAY: &str = "use `blockyard replay` for traces";
const NAMES: &str = "name the files with `filename` instead";

const fn refused(
    name: &'static str,
    aliases: &'static [&'static str],
    reason: &'static str,
) -> OptionDef {
    let effect = Effect::Refused(reason);
    OptionDef { name, aliases, doc: "not supported yet", effect, apply: |_, v| v.text().map(drop) }
}

pub(super) static OPTIONS: &[OptionDef] = &[
    refused("verify", &[], "the data of a job is not modelled"),
    refused("verify_only", &[], OTHER_PASS),
    refused("verify_async", &[], OTHER_PASS),
    refused("verify_async_cpus", &[], OTHER_PASS),
    refused("verify_backlog", &[], OTHER_PASS),
    refused("verify_backlog_batch", &[], OTHER_PASS),
    refused("verify_state_load", &[], OTHER_PASS),
    refused("experimental_verify", &[], OTHER_PASS),
    refused("trim_percentage", &[], OTHER_PASS),
    refused("trim_verify_zero", &[], OTHER_PASS),
    refused("trim_backlog", &[], OTHER_PASS),
    refused("trim_backlog_batch", &[], OTHER_PASS),
    refused("create_only", &[], OTHER_PASS),
    refused("zonemode", &[], ZONES),
    refused("zonesize", &[], ZONES),
    refused("zonecapacity", &[], ZONES),
    refused("zonerange", &[], ZONES),
    refused("zoneskip", &[], ZONES),
    refused("read_beyond_wp", &[], ZONES),
    refused("max_open_zones", &[], ZONES),
    refused("job_max_open_zones", &[], ZONES),
    refused("ignore_zone_limits", &[], ZONES),
    refused("zone_reset_threshold", &[], ZONES),
    refused("zone_reset_frequency", &[], ZONES),
    refused("rate_min", &[], TARGETS),
    refused("rate_iops_min", &[], TARGETS),
    refused("max_latency", &[], TARGETS),
    refused("latency_target", &[], TARGETS),
    refused("latency_window", &[], TARGETS),
    refused("latency_percentile", &[], TARGETS),
    refused("latency_run", &[], TARGETS),
    refused("steadystate", &["ss"], TARGETS),
    refused("steadystate_duration", &["ss_dur"], TARGETS),
    refused("steadystate_ramp_time", &["ss_ramp"], TARGETS),
    refused("read_iolog", &[], REPLAY),
    refused("write_iolog", &[], REPLAY),
    refused("read_iolog_chunked", &[], REPLAY),
    refused("replay_no_stall", &[], REPLAY),
    refused("replay_redirect", &[], REPLAY),
    refused("replay_scale", &[], REPLAY),
    refused("replay_align", &[], REPLAY),
    refused("replay_time_scale", &[], REPLAY),
    refused("replay_skip", &[], REPLAY),
    refused("merge_blktrace_file", &[], REPLAY),
    refused("merge_blktrace_scalars", &[], REPLAY),
    refused("merge_blktrace_iters", &[], REPLAY),
    refused("filename_format", &[], NAMES),
    refused("opendir", &[], NAMES),
    refused("file_append", &[], "files have no end of their own"),
    refused("fill_device", &["fill_fs"], "files have no end of their own"),
    refused("wait_for", &[], "use `stonewall`"),
    refused("profile", &[], "built-in fio profiles are not known"),
    refused("flow", &[], "jobs do not take turns"),
    refused("flow_id", &[], "jobs do not take turns"),
    refused("flow_sleep", &[], "jobs do not take turns"),
    refused("cgroup", &[], "control groups are not modelled"),
    refused("cgroup_weight", &[], "control groups are not modelled"),
    refused("cgroup_nodelete", &[], "control groups are not modelled"),
    refused("bs_is_seq_rand", &[], "lengths go by read, write and trim"),
    refused("serialize_overlap", &[], "overlapping I/Os are not held back"),
    refused("io_submit_mode", &[], "I/O is submitted by the job itself"),
    refused("write_barrier", &["barrier"], "Linux has no barrier writes"),
    refused("sync_file_range", &[], "it concerns the page cache"),
    refused("fsync_on_close", &[], "files are not closed; use end_fsync"),
    refused("atomic", &[], "atomic writes are not modelled"),
    refused("cmdprio_percentage", &[], "priority is per job"),
    refused("cmdprio_class", &[], "priority is per job"),
    refused("cmdprio", &[], "priority is per job"),
    refused("cmdprio_bssplit", &[], "priority is per job"),
    refused("sqthread_poll", &[], "kernel-side submission is not modelled"),
    refused("sqthread_poll_cpu", &[], "kernel-side submission is not modelled"),
    refused("nowait", &[], "no call of a job returns early"),
    refused("uncached", &[], "it concerns the page cache"),
];
