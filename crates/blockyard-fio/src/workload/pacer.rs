//! The earliest time of the next I/O, for jobs with a rate.

use crate::job::{BlockSizes, Job, Op, RateProcess};

use super::prng::{Prng, unit};

const SECOND_NS: u128 = 1_000_000_000;

/// Limits one kind of I/O of a job instance to its `rate` or `rate_iops`.
///
/// The pacer counts from the start of the instance, so a job that fell behind may catch up. As in
/// fio 3.42, `rate_iops` stands for so many of the shortest I/Os: 100 of `bsrange=4k-64k` are
/// 400 KiB/s, or 12 I/Os of 34 KiB. With `bssplit` it counts I/Os (fio 3.33: bytes, too).
#[derive(Clone, Debug)]
pub struct Pacer {
    bytes_per_s: u64,
    /// The shortest I/O.
    min_bytes: u64,
    spacing: Spacing,
}

/// What decides on the next I/O.
#[derive(Clone, Debug)]
enum Spacing {
    /// The bytes so far.
    Bytes,
    /// The I/Os so far, at this rate.
    Ios { per_s: u64 },
    /// Draws.
    Poisson(Poisson),
}

/// Gaps with an exponential distribution. As in fio, their mean is that of the shortest I/Os at the
/// rate in whole I/Os, whatever the length of each.
#[derive(Clone, Debug)]
struct Poisson {
    prng: Prng,
    mean_ns: f64,
    issued_ios: u64,
    at_ns: u64,
}

impl Pacer {
    /// Returns a pacer for the I/Os `op` of `job`; `None` if the job does not limit them.
    pub fn new(job: &Job, op: Op, instance: u32, seed: u64) -> Option<Self> {
        let ios_per_s = *job.rate_iops.of(op);
        let min_bytes = u64::from(job.block.of(op).min_bytes());
        let bytes_per_s = match *job.rate_bytes_per_s.of(op) {
            0 => ios_per_s.saturating_mul(min_bytes),
            bytes_per_s => bytes_per_s,
        };
        if bytes_per_s == 0 {
            return None;
        }
        let spacing = match (job.rate_process, job.block.of(op)) {
            (RateProcess::Poisson, _) => {
                let prng = Prng::new(seed).fork(u64::from(job.first_instance + instance));
                Spacing::Poisson(Poisson::new(prng.fork(op as u64), bytes_per_s, min_bytes))
            }
            (RateProcess::Linear, BlockSizes::Split(_)) if ios_per_s > 0 => {
                Spacing::Ios { per_s: ios_per_s }
            }
            (RateProcess::Linear, _) => Spacing::Bytes,
        };
        Some(Self { bytes_per_s, min_bytes, spacing })
    }

    /// Returns the earliest time for the next I/O, in nanoseconds since the start of the job, after
    /// `issued_ios` I/Os with `issued_bytes` in total. Neither may be less than in an earlier call.
    pub fn next_allowed_ns(&mut self, issued_bytes: u64, issued_ios: u64) -> u64 {
        match &mut self.spacing {
            Spacing::Bytes => due_ns(issued_bytes, self.bytes_per_s),
            Spacing::Ios { per_s } => due_ns(issued_ios, *per_s),
            Spacing::Poisson(poisson) => poisson.advance(issued_ios),
        }
    }

    /// Returns the part of a pause, in nanoseconds, that the rate does not make up for with
    /// `rate_ignore_thinktime`.
    ///
    /// As in fio, the next I/O follows the pause at once if the pause is at least as long as the
    /// shortest I/O takes at the rate. With 5 ms for each, it follows 2 ms of pause after 7 ms, and
    /// so it does after any pause where I/Os are counted or drawn.
    #[must_use]
    pub fn forgiven_ns(&self, pause_ns: u64) -> u64 {
        let gap_ns = due_ns(self.min_bytes, self.bytes_per_s);
        let counts_bytes = matches!(self.spacing, Spacing::Bytes);
        if counts_bytes && gap_ns <= pause_ns { pause_ns - gap_ns } else { pause_ns }
    }
}

/// Returns the time in nanoseconds for `done` at `per_s`; 0 without a rate. Saturates.
fn due_ns(done: u64, per_s: u64) -> u64 {
    let ns = (u128::from(done) * SECOND_NS).checked_div(per_s.into()).unwrap_or(0);
    u64::try_from(ns).unwrap_or(u64::MAX)
}

impl Poisson {
    /// fio 3.33 and 3.42 divide by zero at a rate below one I/O per second.
    #[allow(clippy::float_arithmetic, reason = "four operations, which all machines round alike")]
    #[allow(clippy::cast_precision_loss, reason = "rates are below 2 to the 53")]
    fn new(prng: Prng, bytes_per_s: u64, min_bytes: u64) -> Self {
        let ios_per_s = match bytes_per_s / min_bytes.max(1) {
            0 => bytes_per_s as f64 / min_bytes as f64,
            whole => whole as f64,
        };
        Self { prng, mean_ns: 1e9 / ios_per_s, issued_ios: 0, at_ns: 0 }
    }

    #[allow(clippy::float_arithmetic, reason = "an exponential draw, through libm")]
    #[allow(clippy::cast_possible_truncation, reason = "float to integer casts saturate")]
    #[allow(clippy::cast_sign_loss, reason = "-ln(1 - u) is not negative")]
    fn advance(&mut self, issued_ios: u64) -> u64 {
        debug_assert!(self.issued_ios <= issued_ios, "the number of issued I/Os must not fall");
        while self.issued_ios < issued_ios {
            self.issued_ios += 1;
            let gap = -libm::log(1.0 - unit(&mut self.prng)) * self.mean_ns;
            self.at_ns = self.at_ns.saturating_add(gap as u64);
        }
        self.at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::super::generator::Generator;
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

    /// Returns how many I/Os of `options` begin within 3 s.
    fn begun(options: &str) -> u64 {
        let args = format!("--name=a --direct=1 --rw=randread --norandommap --size=1g {options}");
        let job = parse_args(args.split(' '), &NoSource).unwrap().jobs.remove(0);
        let mut generator = Generator::new(&job, 0, &job.resolve(0, 1 << 30).unwrap(), 1);
        let mut pacer = Pacer::new(&job, Op::Read, 0, 1).unwrap();
        let mut bytes = 0;
        let mut ios = 0;
        while pacer.next_allowed_ns(bytes, ios) < 3_000_000_000 {
            bytes += u64::from(generator.next(None).unwrap().len_bytes);
            ios += 1;
        }
        ios
    }

    /// The numbers of I/Os of fio 3.33 with its null engine; fio 3.42 for `bssplit`, where 3.33 has
    /// 36 (commit 3a0e8ddf, backend.c: `usec_for_io`). The last one is 12 MiB of 34 KiB each.
    #[test]
    fn rates_of_several_lengths_are_those_of_fio() {
        for (options, fio) in [
            ("--rate_iops=100", 300),
            ("--rate_iops=100 --bsrange=4k-64k", 35),
            ("--rate_iops=100 --bssplit=4k/50:64k/50", 300),
            ("--rate=4m --bsrange=4k-64k --rate_process=poisson", 3011),
            ("--rate=4m --bsrange=4k-64k", 361),
        ] {
            let ours = begun(options);
            assert!(ours.abs_diff(fio) <= 2 + fio / 20, "{options}: {ours}, fio: {fio}");
        }
    }

    fn forgiven_ms(process: &str) -> [u64; 3] {
        let pacer = pacer("--rate_iops=200", process);
        [2, 5, 20].map(|ms| pacer.forgiven_ns(ms * 1_000_000) / 1_000_000)
    }

    /// With 5 ms from I/O to I/O: see [`Pacer::forgiven_ns`].
    #[test]
    fn a_long_pause_is_forgiven_but_for_one_io() {
        assert_eq!(forgiven_ms("linear"), [2, 0, 15]);
        assert_eq!(forgiven_ms("poisson"), [2, 5, 20]);
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
        assert_eq!(iops.next_allowed_ns(5000 * 4096, 5000), 5_000_000_000);
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
