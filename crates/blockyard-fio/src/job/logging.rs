//! The I/O logs that a job requests, and the periods at which its rates are sampled.

/// The beginning of the names of log files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPrefix {
    /// The name of the job.
    JobName,
    /// This text.
    Given(String),
}

/// Logs and samples over time of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logging {
    /// Log the latency of each I/O (`write_lat_log`); default none.
    pub latency: Option<LogPrefix>,
    /// Log bandwidth (`write_bw_log`); default none.
    pub bandwidth: Option<LogPrefix>,
    /// Log I/Os per second (`write_iops_log`); default none.
    pub iops: Option<LogPrefix>,
    /// Whether each instance has log files of its own; default true. Otherwise all instances of a
    /// job share them.
    pub(crate) per_instance: bool,
    /// Length in milliseconds of a window, which has one entry per kind of I/O; 0, the default,
    /// means one entry per I/O.
    pub(crate) window_ms: u64,
    /// Log the largest value of a window instead of the mean; default false.
    pub largest: bool,
    /// Log offsets; default false.
    pub offset: bool,
    /// Log the priority in Linux's encoding, not just whether it is real-time; default false.
    pub priority: bool,
    /// Milliseconds between samples of the bandwidth; 0 means none. For `None`, the default, see
    /// [`Self::bandwidth_period_ms`].
    pub(crate) bandwidth_sample_ms: Option<u64>,
    /// Milliseconds between samples of I/Os per second, likewise.
    pub(crate) iops_sample_ms: Option<u64>,
}

/// fio's default time between samples, in milliseconds.
const SAMPLE_MS: u64 = 500;

impl Logging {
    /// Returns the milliseconds between samples of the bandwidth: the period that was set, else the
    /// window of the log, else 500.
    #[must_use]
    pub(crate) fn bandwidth_period_ms(&self) -> u64 {
        self.period_ms(self.bandwidth_sample_ms, self.bandwidth.is_some())
    }

    /// Returns the milliseconds between samples of I/Os per second, likewise.
    #[must_use]
    pub(crate) fn iops_period_ms(&self) -> u64 {
        self.period_ms(self.iops_sample_ms, self.iops.is_some())
    }

    fn period_ms(&self, set: Option<u64>, logged: bool) -> u64 {
        let of_log = if logged && self.window_ms > 0 { self.window_ms } else { SAMPLE_MS };
        set.unwrap_or(of_log)
    }

    /// Whether any log is requested.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.latency.is_some() || self.bandwidth.is_some() || self.iops.is_some()
    }
}

impl Default for Logging {
    fn default() -> Self {
        Self {
            latency: None,
            bandwidth: None,
            iops: None,
            per_instance: true,
            window_ms: 0,
            largest: false,
            offset: false,
            priority: false,
            bandwidth_sample_ms: None,
            iops_sample_ms: None,
        }
    }
}
