//! The job a command is given: from a file, from standard input or from its options.

use std::io::{self, Read};

use blockyard_sim::job::{
    FILE_BYTES_MAX, JobFile, SystemSource, parse_args, parse_bytes, parse_file,
};

use crate::cli::Job;
use crate::message::{Failure, note};

/// A job and what to call it.
pub(crate) struct Given {
    /// The job file, `-` for standard input, or the names of the jobs given by options.
    pub(crate) name: String,
    pub(crate) jobs: JobFile,
}

/// Reads the job, and tells what of it has no effect.
pub(crate) fn read(job: &Job) -> Result<Given, Failure> {
    let given = match job.file.as_deref() {
        Some("-") => Given { name: "-".to_owned(), jobs: from_standard_input()? },
        Some(path) => Given { name: path.to_owned(), jobs: parse_file(path, &SystemSource)? },
        None => {
            let jobs = parse_args(job.options.iter().map(String::as_str), &SystemSource)?;
            let names: Vec<_> = jobs.jobs.iter().map(|job| job.name.as_str()).collect();
            Given { name: names.join(","), jobs }
        }
    };
    given.jobs.notes.iter().for_each(|told| note(&told.to_string()));
    Ok(given)
}

fn from_standard_input() -> Result<JobFile, Failure> {
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    io::stdin()
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Input(format!("standard input: {error}")))?;
    Ok(parse_bytes("-", &bytes, &SystemSource)?)
}
