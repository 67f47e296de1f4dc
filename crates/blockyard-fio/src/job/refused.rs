//! The options that would change the measurements but are not modelled yet, each with the reason.

use super::option::{Effect, OptionDef};

const OTHER_PASS: &str = "further passes are not modelled";
const BACKLOG: &str = "reads that check data between the writes are not modelled";
const ZONES: &str = "zoned devices are not modelled";
const PLACEMENT: &str = "the placement of data by NVMe devices is not modelled";
const PROTECTION: &str = "metadata that protects sectors is not modelled";
const REPLAY: &str = "use `blockyard replay` for traces";

const fn refused(
    name: &'static str,
    aliases: &'static [&'static str],
    reason: &'static str,
) -> OptionDef {
    let effect = Effect::Refused(reason);
    OptionDef { name, aliases, doc: "not supported yet", effect, apply: |_, v| v.text().map(drop) }
}

pub(super) static OPTIONS: &[OptionDef] = &[
    refused("verify_only", &[], OTHER_PASS),
    refused("verify_backlog", &[], BACKLOG),
    refused("verify_backlog_batch", &[], BACKLOG),
    refused("verify_state_load", &[], OTHER_PASS),
    refused("experimental_verify", &[], OTHER_PASS),
    refused("trim_percentage", &[], OTHER_PASS),
    refused("trim_verify_zero", &[], OTHER_PASS),
    refused("trim_backlog", &[], OTHER_PASS),
    refused("trim_backlog_batch", &[], OTHER_PASS),
    refused("create_only", &[], OTHER_PASS),
    refused("zonecapacity", &[], ZONES),
    refused("recover_zbd_write_error", &[], ZONES),
    refused("write_zone_remainder", &[], ZONES),
    refused("read_beyond_wp", &[], ZONES),
    refused("max_open_zones", &[], ZONES),
    refused("job_max_open_zones", &[], ZONES),
    refused("ignore_zone_limits", &[], ZONES),
    refused("zone_reset_threshold", &[], ZONES),
    refused("zone_reset_frequency", &[], ZONES),
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
    refused("opendir", &[], "name the files with `filename` instead"),
    refused("file_append", &[], "files have no end of their own"),
    refused("wait_for", &[], "use `stonewall`"),
    refused("profile", &[], "fio's built-in profiles are not modelled"),
    refused("bs_is_seq_rand", &[], "block sizes differ by direction only"),
    refused("serialize_overlap", &[], "overlapping I/Os are not held back"),
    refused("write_barrier", &["barrier"], "Linux has no barriers any more"),
    refused("ramp_size", &[], "use ramp_time"),
    refused("thinkcycles", &[], "a job computes for a time: use thinktime_spin"),
    refused("log_issue_time", &[], "entries of logs have the time at which an I/O ended"),
    refused("atomic", &[], "atomic writes are not modelled"),
    refused("hipri_percentage", &[], "a job polls for all its I/Os or for none"),
    refused(
        "sqthread_poll",
        &[],
        "a thread of the kernel that submits for the job is not modelled",
    ),
    refused(
        "sqthread_poll_cpu",
        &[],
        "a thread of the kernel that submits for the job is not modelled",
    ),
    refused("nowait", &[], "calls wait and do not return early"),
    refused("fdp", &[], PLACEMENT),
    refused("fdp_pli", &[], PLACEMENT),
    refused("dataplacement", &["data_placement"], PLACEMENT),
    refused("plids", &["plid"], PLACEMENT),
    refused("plid_select", &["fdp_pli_select"], PLACEMENT),
    refused("dp_scheme", &[], PLACEMENT),
    refused("num_range", &[], "a discard has one range"),
    refused("md_per_io_size", &[], PROTECTION),
    refused("pi_act", &[], PROTECTION),
    refused("pi_chk", &[], PROTECTION),
    refused("apptag", &[], PROTECTION),
    refused("apptag_mask", &[], PROTECTION),
    refused("sprandom", &[], "it lays data out for flash without wear, which no device models"),
    refused("spr_op", &[], "it belongs to sprandom"),
    refused("spr_num_regions", &[], "it belongs to sprandom"),
    refused("spr_cs", &[], "it belongs to sprandom"),
];

#[cfg(test)]
mod tests {
    use super::super::build::parse_args;
    use super::super::source::NoSource;

    /// Returns the message about an option of a job that verifies its writes; empty if none.
    fn message(option: &str) -> String {
        let job = ["--name=a", "--rw=write", "--direct=1", "--size=1m", "--verify=crc32c", option];
        parse_args(job, &NoSource).map_or_else(|error| error.to_string(), |_| String::new())
    }

    /// The options that fio 3.40 to 3.42 and its master branch (`verify_policy`) added.
    #[test]
    fn options_of_new_versions_of_fio_are_known() {
        for answered in [
            "--comm=writer",
            "--verify_pattern_interval=4k",
            "--verify_policy=completed",
            "--verify_policy=fsynced",
            "--end_syncfs=1",
        ] {
            assert_eq!(message(answered), "", "{answered}");
        }
        for (refused, reason) in [
            ("--ramp_size=1m", "use ramp_time"),
            ("--write_zone_remainder=1", "zoned devices are not modelled"),
            ("--recover_zbd_write_error=1", "zoned devices are not modelled"),
        ] {
            let message = message(refused);
            assert!(message.contains(reason), "{refused}: {message}");
        }
    }
}
