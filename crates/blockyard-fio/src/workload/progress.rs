//! Where a pass over the files of a job ends, and where the job ends.

use crate::job::{Job, Mix, Resolved};

/// The I/Os and bytes of a job instance, and their limits.
///
/// As in fio, the limits are on what was issued: an I/O begins while fewer bytes than the limit are
/// issued. So `bs=64k size=100k` is two I/Os where the file has room for the second. The limits of
/// a job with `loops` are multiples of those of one pass. So `size=128k io_size=80k loops=3` is one
/// pass of 128k and one of 112k.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    limit_bytes: u64,
    limit_ios: u64,
    /// Bytes after which a pass ends even if files have room left.
    pass_bytes: u64,
    /// The number of passes; beyond them, passes go on up to `further_bytes` if a whole I/O is
    /// missing.
    passes: u64,
    further_bytes: u64,
    longest_bytes: u64,
    /// Whether files that have no further I/O may begin anew beyond `passes`.
    goes_around: bool,
    /// Only time ends the instance.
    is_endless: bool,
    passes_done: u64,
    ios: u64,
    bytes: u64,
    ios_of_pass: u64,
    bytes_of_pass: u64,
}

impl Progress {
    pub(super) fn new(job: &Job, resolved: &Resolved) -> Self {
        let Resolved { size_bytes, io_bytes, passes, .. } = *resolved;
        debug_assert!(passes > 0, "a job has a pass");
        let is_endless = passes == u64::MAX;
        let wanted_bytes = if io_bytes > 0 { io_bytes } else { size_bytes };
        let limit_bytes = wanted_bytes.saturating_mul(passes);
        let lengths = job.block.each().into_iter().map(|sizes| sizes.max_bytes());
        Self {
            limit_bytes,
            limit_ios: job.number_ios.unwrap_or(u64::MAX).saturating_mul(passes),
            pass_bytes: if is_endless { u64::MAX } else { pass_bytes(job, resolved, limit_bytes) },
            passes,
            further_bytes: wanted_bytes,
            longest_bytes: lengths.max().unwrap_or(1).into(),
            goes_around: io_bytes > 0,
            is_endless,
            passes_done: 0,
            ios: 0,
            bytes: 0,
            ios_of_pass: 0,
            bytes_of_pass: 0,
        }
    }

    /// Whether the pass ends, whatever its files have left.
    #[inline]
    pub(super) const fn pass_is_over(&self) -> bool {
        let over = self.bytes >= self.limit_bytes
            || self.ios >= self.limit_ios
            || self.bytes_of_pass >= self.pass_bytes;
        over && !self.is_endless
    }

    /// Counts an I/O of `len_bytes`.
    #[inline]
    pub(super) fn count(&mut self, len_bytes: u32) {
        debug_assert!(len_bytes > 0, "an I/O has bytes");
        self.ios += 1;
        self.ios_of_pass += 1;
        self.bytes += u64::from(len_bytes);
        self.bytes_of_pass += u64::from(len_bytes);
    }

    /// Counts I/Os anew, with `ios` done. Bytes and passes stay.
    pub(super) const fn count_anew(&mut self, ios: u64) {
        self.ios = ios;
    }

    /// Returns the number of passes that have ended.
    pub(super) const fn passes_done(&self) -> u64 {
        self.passes_done
    }

    /// Begins another pass if there is one. `files_are_over` says whether no file had a further
    /// I/O.
    pub(super) const fn start_pass(&mut self, files_are_over: bool) -> bool {
        // A pass without an I/O would be followed by infinitely many.
        if self.ios_of_pass == 0 {
            return false;
        }
        self.passes_done = self.passes_done.saturating_add(1);
        let missing = self.further_bytes.saturating_sub(self.bytes);
        let goes_on = missing > 0
            && missing >= self.longest_bytes
            && self.ios < self.limit_ios
            && (self.goes_around || !files_are_over);
        if !self.is_endless && self.passes_done >= self.passes && !goes_on {
            return false;
        }
        self.ios_of_pass = 0;
        self.bytes_of_pass = 0;
        true
    }
}

/// Returns the bytes after which a pass of `job` ends. fio counts the bytes of a pass only for
/// engines that queue I/Os. With the others, a pass ends when its files have no further I/O.
fn pass_bytes(job: &Job, resolved: &Resolved, limit_bytes: u64) -> u64 {
    if !job.engine.is_async() {
        return u64::MAX;
    }
    let Resolved { size_bytes, io_bytes, .. } = *resolved;
    let writes = matches!(job.pattern.mix, Mix::Write | Mix::ReadWrite | Mix::TrimWrite);
    let overwrites = writes && job.pattern.random && job.norandommap;
    let bytes = if overwrites { size_bytes.max(io_bytes) } else { size_bytes };
    match job.pattern.mix {
        // A trim and its write are one I/O here, and two of fio's.
        Mix::TrimWrite => bytes.midpoint(limit_bytes),
        _ => bytes,
    }
}
