//! The options of jobs in fio's JSON: `global options` and `job options`.

use std::collections::BTreeMap;

use crate::job::{BlockSizes, Job, JobFile, Mix};

/// Options and their values, by name.
pub(super) type Options = BTreeMap<String, String>;

/// Returns the options of `[global]` as written, which all jobs share.
pub(super) fn global(jobs: &JobFile) -> Options {
    let first = jobs.jobs.first().into_iter().flat_map(Job::written);
    first.filter(|(_, _, own)| !own).map(|(option, text, _)| pair(option, text)).collect()
}

/// Returns the options of a job: the principal ones as understood, and its own as written.
pub(super) fn of_job(job: &Job) -> Options {
    let mix = match job.pattern.mix {
        Mix::Read => "read",
        Mix::Write => "write",
        Mix::Trim => "trim",
        Mix::ReadWrite => "rw",
        Mix::TrimWrite => "trimwrite",
    };
    let random = if job.pattern.random { "rand" } else { "" };
    let principal = [
        ("name", job.name.clone()),
        ("ioengine", job.engine_name.to_owned()),
        ("rw", format!("{random}{mix}")),
        ("iodepth", job.iodepth.to_string()),
        ("numjobs", job.numjobs.to_string()),
        ("direct", u8::from(job.direct).to_string()),
    ];
    let mut options: Options =
        principal.into_iter().map(|(option, value)| (option.to_owned(), value)).collect();
    // Programs that read fio's JSON expect the block size, which most jobs give.
    let ops = job.pattern.mix.ops().iter();
    let sizes: Vec<_> = ops.map(|op| job.block.of(*op)).collect();
    if let Some(BlockSizes::Fixed(bytes)) = sizes.first()
        && sizes.iter().all(|size| **size == BlockSizes::Fixed(*bytes))
    {
        options.insert("bs".to_owned(), size(*bytes));
    }
    let written = job.written().filter(|(option, _, own)| *own || *option == "bs");
    options.extend(written.map(|(option, text, _)| pair(option, text)));
    // The name of a job is that of its section, unless it has the option.
    options.insert("name".to_owned(), job.name.clone());
    options
}

/// A flag without a value is 1, as in fio.
fn pair(option: &str, text: &str) -> (String, String) {
    (option.to_owned(), if text.is_empty() { "1" } else { text }.to_owned())
}

/// Bytes with the largest suffix that divides them.
fn size(bytes: u32) -> String {
    match bytes {
        bytes if bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
        bytes if bytes % (1 << 10) == 0 => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    }
}
