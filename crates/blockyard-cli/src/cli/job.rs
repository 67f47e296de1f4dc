//! The job of a command: a file, options or a trace, and the part of it that is used.

use clap::Args;

/// The job.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Job {
    /// A fio job file; `-` for standard input
    #[arg(value_name = "JOB")]
    pub(crate) file: Option<String>,

    /// A job as on fio's command line: --name=x --rw=read --bs=4k ...
    #[arg(id = JOB_OPTIONS, last = true, value_name = "--name=NAME --OPTION=VALUE")]
    pub(crate) options: Vec<String>,

    /// A trace in place of a job; see `blockyard help replay`
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["file", JOB_OPTIONS])]
    pub(crate) replay: Option<String>,
}

/// The name of [`Job::options`].
pub(super) const JOB_OPTIONS: &str = "options";

/// The part of a job that is used, as fio's switches choose it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct JobChoice {
    /// Only run this section of the job file, besides [global]; may be repeated
    #[arg(long, value_name = "SECTION", help_heading = FIO)]
    pub(crate) section: Vec<String>,

    /// Refuse jobs that write or trim
    #[arg(long, help_heading = FIO)]
    pub(crate) readonly: bool,

    /// Read the job, and do not run it
    #[arg(long, help_heading = FIO)]
    pub(crate) parse_only: bool,
}

/// The heading of options that fio has, too.
pub(super) const FIO: &str = "As in fio";
