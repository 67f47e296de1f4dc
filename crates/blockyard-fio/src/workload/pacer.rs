//! The earliest time of the next I/O, for jobs with a rate.

use crate::job::{Job, Op, RateProcess};

use super::prng::{Prng, unit};

const SECOND_NS: u128 = 1_000_000_000;

/// Limits one kind of I/O of a job instance to its `rate` or `rate_iops`.
///
/// The pacer counts from the start of the instance, so a job that fell behind may catch up.
#[derive(Clone, Debug)]
pub struct Pacer {
    bytes_per_s: u64,
    ios_per_s: u64,
    poisson: Option<Poisson>,
}

/// Gaps with an exponential distribution and the same mean.
#[derive(Clone, Debug)]
struct Poisson {
    prng: Prng,
    issued_ios: u64,
    at_ns: u64,
}

impl Pacer {
    /// Returns a pacer for the I/Os `op` of `job`; `None` if the job does not limit them.
    pub fn new(job: &Job, op: Op, instance: u32, seed: u64) -> Option<Self> {
        let bytes_per_s = *job.rate_bytes_per_s.of(op);
        let ios_per_s = *job.rate_iops.of(op);
        if bytes_per_s == 0 && ios_per_s == 0 {
            return None;
        }
        let poisson = (job.rate_process == RateProcess::Poisson).then(|| Poisson {
            prng: Prng::new(seed).fork(u64::from(job.first_instance + instance)).fork(op as u64),
            issued_ios: 0,
            at_ns: 0,
        });
        Some(Self { bytes_per_s, ios_per_s, poisson })
    }

    /// Returns the earliest time for the next I/O, in nanoseconds since the start of the job, after
    /// `issued_ios` I/Os with `issued_bytes` in total. Neither may be less than in an earlier call.
    pub fn next_allowed_ns(&mut self, issued_bytes: u64, issued_ios: u64) -> u64 {
        let linear = self.linear_ns(issued_bytes, issued_ios);
        match &mut self.poisson {
            None => linear,
            Some(poisson) => poisson.advance(linear, issued_ios),
        }
    }

    /// Returns the mean gap from I/O to I/O, in nanoseconds, after as many.
    pub fn mean_gap_ns(&self, issued_bytes: u64, issued_ios: u64) -> u64 {
        debug_assert!(issued_ios > 0 || issued_bytes == 0, "{issued_bytes} bytes without an I/O");
        self.linear_ns(issued_bytes, issued_ios) / issued_ios.max(1)
    }

    fn linear_ns(&self, issued_bytes: u64, issued_ios: u64) -> u64 {
        due_ns(issued_bytes, self.bytes_per_s).max(due_ns(issued_ios, self.ios_per_s))
    }
}

/// Returns the time in nanoseconds for `done` at `per_s`; 0 without a rate. Saturates.
fn due_ns(done: u64, per_s: u64) -> u64 {
    let ns = (u128::from(done) * SECOND_NS).checked_div(per_s.into()).unwrap_or(0);
    u64::try_from(ns).unwrap_or(u64::MAX)
}

impl Poisson {
    #[allow(clippy::float_arithmetic, reason = "an exponential draw, through libm")]
    #[allow(clippy::cast_precision_loss, reason = "a mean gap is far below 2 to the 53 ns")]
    #[allow(clippy::cast_possible_truncation, reason = "float to integer casts saturate")]
    #[allow(clippy::cast_sign_loss, reason = "-ln(1 - u) is not negative")]
    fn advance(&mut self, linear_ns: u64, issued_ios: u64) -> u64 {
        debug_assert!(self.issued_ios <= issued_ios, "the number of issued I/Os must not fall");
        while self.issued_ios < issued_ios {
            self.issued_ios += 1;
            let mean_ns = linear_ns as f64 / issued_ios as f64;
            let gap = -libm::log(1.0 - unit(&mut self.prng)) * mean_ns;
            self.at_ns = self.at_ns.saturating_add(gap as u64);
        }
        self.at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{NoSource, parse_args};

    fn job(rate: &str, process: &str) -> Job {
        let process = format!("--rate_process={process}");
        let args = ["--name=a", "--direct=1", rate, &process];
        parse_args(args, &NoSource).unwrap().jobs.remove(0)
    }

    fn pacer(rate: &str, process: &str) -> Pacer {
        Pacer::new(&job(rate, process), Op::Read, 0, 1).unwrap()
    }

    fn gaps(job: &Job, instance: u32, seed: u64) -> [u64; 3] {
        let mut pacer = Pacer::new(job, Op::Read, instance, seed).unwrap();
        [1, 2, 3].map(|ios| pacer.next_allowed_ns(ios * 4096, ios))
    }

    /// The instances of a job, and jobs of the same group, draw gaps of their own; the same
    /// instance repeats its gaps.
    #[test]
    fn each_instance_draws_its_own_gaps() {
        let job = job("--rate_iops=1000", "poisson");
        let first = gaps(&job, 0, 1);
        assert_eq!(first, gaps(&job, 0, 1));
        assert_ne!(first, gaps(&job, 1, 1));
        assert_ne!(first, gaps(&job, 0, 2));
        let mut later = job.clone();
        later.first_instance += 2;
        assert_eq!(gaps(&job, 3, 1), gaps(&later, 1, 1), "instances are counted over all jobs");
    }

    #[test]
    fn linear_rates_space_evenly() {
        let mut iops = pacer("--rate_iops=1000", "linear");
        assert_eq!(iops.next_allowed_ns(0, 0), 0);
        assert_eq!(iops.next_allowed_ns(4096, 1), 1_000_000);
        assert_eq!(iops.next_allowed_ns(1 << 40, 5000), 5_000_000_000);
        let mut bytes = pacer("--rate=1m", "linear");
        assert_eq!(bytes.next_allowed_ns(512 << 10, 9), 500_000_000);
        assert_eq!(bytes.next_allowed_ns(u64::MAX, 9), u64::MAX);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_spread_of_the_distribution() {
        let mut pacer = pacer("--rate_iops=1000", "poisson");
        let at: Vec<_> = (0..=20_000).map(|ios| pacer.next_allowed_ns(ios * 4096, ios)).collect();
        assert!(at[20_000].abs_diff(20_000_000_000) < 500_000_000, "{}", at[20_000]);
        let long = at.windows(2).filter(|pair| pair[1] - pair[0] > 1_000_000).count();
        // A fraction exp(-1) of the gaps is longer than the mean.
        assert!(long.abs_diff(7358) < 300, "{long}");
    }
}
