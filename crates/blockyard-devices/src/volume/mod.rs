//! A volume in a cloud: storage behind a network, as fast as its price.
//!
//! Two buckets of tokens hold accesses back, one of I/Os and one of bytes. An access passes both,
//! then takes the latency of the network and the storage, beside all others.
//!
//! Left out: limits of the machine that uses the volume, the network's own queues, snapshots that
//! are fetched at the first access, several machines on one volume, and the joining of neighbours
//! that some clouds do before they count.
//!
//! A bucket limits accesses for as long as it lacks the tokens of the next one: since the last one
//! left, whenever the next one came. It serves on credit while it neither is full nor lets an
//! access wait to be filled. The credit that was spent is the level before less the level now. A
//! bucket whose burst rate is its rate gives no credit.
//!
//! # Rules
//!
//! - **[tokens-before-access]** An access begins when the buckets have its tokens, in the order of
//!   arrival. A bucket fills at its rate up to its credit, and is emptied at its burst rate at
//!   most. An access of more tokens than a bucket holds waits until it is full, and leaves it in
//!   debt.

mod evidence;
pub(crate) mod profile;

use super::load::{MediumLoad, Parts, PartsLoad, Work, WorkTimes};
use super::medium::{
    Access, CommandId, Medium, MediumCounts, MediumEvent, MediumEvents, MediumUse,
};
use crate::volume::profile::{BucketProfile, VolumeProfile};
use blockyard::bio::Op;
use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use std::collections::VecDeque;

const SECOND_NS: u64 = 1_000_000_000;

/// A bucket of tokens ([tokens-before-access]).
#[derive(Clone, Copy, Debug)]
struct Bucket {
    profile: BucketProfile,
    /// Tokens in the bucket at `at`, in billionths. Below zero: debt.
    level: i128,
    at: Instant,
    /// When the burst rate lets the next token leave.
    free_at: Instant,
    /// Time for which tokens left it, or an access waited for some.
    used: WorkTimes,
    /// The level from which spent credit is counted.
    level_before: i128,
}

impl Bucket {
    fn new(profile: BucketProfile) -> Self {
        debug_assert!(profile.rate > 0 && profile.credit > 0, "{profile:?} lets nothing pass");
        debug_assert!(profile.rate <= profile.burst, "{profile:?} fills faster than it empties");
        let zero = Instant::ZERO;
        let level = i128::from(profile.credit) * i128::from(SECOND_NS);
        let used = WorkTimes::NONE;
        let level_before = level;
        Self { profile, level, at: zero, free_at: zero, used, level_before }
    }

    /// Takes `tokens` at `now` or later, and returns when.
    fn take(&mut self, tokens: u64, now: Instant) -> Instant {
        let last_left_at = self.free_at;
        let begin = now.max(last_left_at);
        self.fill(begin);
        let wanted = i128::from(tokens.min(self.profile.credit)) * i128::from(SECOND_NS);
        let missing = (wanted - self.level).max(0).unsigned_abs();
        let refill = span(missing.div_ceil(u128::from(self.profile.rate)));
        let begin = begin + refill;
        self.fill(begin);
        let is_on_credit = refill == Duration::ZERO && self.bursts() && self.level < self.full();
        self.level -= i128::from(tokens) * i128::from(SECOND_NS);
        let ns = u128::from(tokens) * u128::from(SECOND_NS);
        let time = span(ns.div_ceil(u128::from(self.profile.burst)));
        let work = if is_on_credit { Work::BurstCredit } else { Work::BaselineRate };
        // With a token each 10 ms, an access 5 ms after the last one waits for 5 ms, and the bucket
        // lacks its token for all 10 ms.
        let short =
            if refill > Duration::ZERO { begin.since(last_left_at) } else { Duration::ZERO };
        self.used.add(work, short + time);
        debug_assert!(begin >= last_left_at.max(now), "a token leaves after those before it");
        self.free_at = begin + time;
        begin
    }

    /// Fills the bucket until `at`.
    fn fill(&mut self, at: Instant) {
        debug_assert!(self.at <= at, "a bucket fills as time passes, from {} until {at}", self.at);
        let more = i128::from(self.profile.rate) * i128::from(at.since(self.at).as_ns());
        self.level = (self.level + more).min(self.full());
        self.at = at;
    }

    /// Returns the level of the full bucket.
    fn full(&self) -> i128 {
        i128::from(self.profile.credit) * i128::from(SECOND_NS)
    }

    /// Whether it can be emptied faster than it fills.
    const fn bursts(&self) -> bool {
        self.profile.burst > self.profile.rate
    }

    /// Returns what it was occupied with. Only a bucket that bursts has kinds of work.
    fn load(&self, parts: Parts) -> PartsLoad {
        if self.bursts() {
            PartsLoad::of_work(parts, 1, self.used)
        } else {
            PartsLoad::of_time(parts, 1, self.used.total())
        }
    }

    /// Returns the tokens of credit that were spent and not earned again.
    fn spent(&self) -> u64 {
        let fewer = if self.bursts() { (self.level_before - self.level).max(0) } else { 0 };
        u64::try_from(fewer / i128::from(SECOND_NS)).unwrap_or(u64::MAX)
    }

    fn forget(&mut self) {
        (self.used, self.level_before) = (WorkTimes::NONE, self.level);
    }
}

fn span(ns: u128) -> Duration {
    Duration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// The medium.
#[derive(Debug)]
pub(crate) struct Volume {
    profile: VolumeProfile,
    prng: Prng,
    iops: Bucket,
    bytes: Bucket,
    ended: VecDeque<CommandId>,
    counts: Counts,
}

/// What the limits did.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    ios: u64,
    iops_wait: Duration,
    bytes_wait: Duration,
}

impl Volume {
    /// Returns a volume by `profile` that nobody has used for a long time. `prng` draws the spread
    /// of its latency.
    #[must_use]
    pub(super) fn new(profile: VolumeProfile, prng: Prng) -> Self {
        Self {
            profile,
            prng,
            iops: Bucket::new(profile.iops),
            bytes: Bucket::new(profile.bytes),
            ended: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Takes the tokens of `access` from `now` on, and returns when it begins
    /// ([tokens-before-access]).
    fn admit(&mut self, access: Access, now: Instant) -> Instant {
        let bytes = u64::from(access.sectors) * u64::from(SECTOR_BYTES);
        let ios = bytes.div_ceil(self.profile.io_unit);
        let counted = self.iops.take(ios, now);
        let begin = self.bytes.take(bytes, counted);
        debug_assert!(now <= counted && counted <= begin, "[tokens-before-access]");
        self.counts.ios += ios;
        self.counts.iops_wait += counted.since(now);
        self.counts.bytes_wait += begin.since(counted);
        begin
    }
}

impl Medium for Volume {
    fn begin(&mut self, id: CommandId, access: Access, now: Instant, events: &mut MediumEvents) {
        let latency = match access.op {
            Op::Read => self.profile.read,
            Op::Write | Op::WriteZeroes => self.profile.write,
            // The volume has no volatile cache, and what it gives up costs it nothing.
            _ => return self.ended.push_back(id),
        };
        let begin = self.admit(access, now);
        let spread = self.profile.spread;
        let latency = spread.map_or(latency, |spread| spread.draw(latency, &mut self.prng));
        events.push_back((begin + latency, MediumEvent(id.0)));
    }

    fn event(&mut self, event: MediumEvent, _now: Instant, _events: &mut MediumEvents) {
        self.ended.push_back(CommandId(event.0));
    }

    fn next_ended(&mut self) -> Option<CommandId> {
        self.ended.pop_front()
    }

    fn counts(&self) -> MediumCounts {
        let Counts { ios, iops_wait, bytes_wait } = self.counts;
        vec![
            ("ios_counted", ios),
            ("iops_limit_wait_ns", iops_wait.as_ns()),
            ("bytes_limit_wait_ns", bytes_wait.as_ns()),
            ("io_credit_spent", self.iops.spent()),
            ("byte_credit_spent", self.bytes.spent()),
        ]
    }

    fn used(&self) -> MediumUse {
        MediumUse { used: self.iops.used.total().max(self.bytes.used.total()), units: 1 }
    }

    fn load(&self) -> MediumLoad {
        let parts = vec![self.iops.load(Parts::IosLimit), self.bytes.load(Parts::BytesLimit)];
        MediumLoad { parts, ..MediumLoad::default() }
    }

    fn forget(&mut self) {
        self.counts = Counts::default();
        self.iops.forget();
        self.bytes.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    /// [tokens-before-access]: 100 tokens a second, 1000 while there is credit, of which there is
    /// 500.
    #[test]
    fn a_bucket_bursts_until_its_credit_is_spent() {
        let profile = BucketProfile { rate: 100, burst: 1000, credit: 500 };
        let mut bucket = Bucket::new(profile);
        let taken: Vec<_> = (0..2000).map(|_| bucket.take(1, at(0))).collect();
        // 1000 leave and 100 arrive in a second: 500 last for 555 tokens. After that, one each 10
        // ms.
        assert_eq!(taken[400], at(400));
        let after = [500, 600].map(|n: usize| taken[n + 1].since(taken[n]));
        assert_eq!(after, [Duration::from_ms(1), Duration::from_ms(10)]);
        let spent = taken.windows(2).position(|pair| pair[1].since(pair[0]) > Duration::from_ms(1));
        assert!(spent.is_some_and(|n| n.abs_diff(555) <= 1), "{spent:?}");
        // The bucket was the limit all the time.
        assert_eq!(Instant::ZERO + bucket.used.total(), taken[1999] + Duration::from_ms(1));
    }

    /// 100 tokens a second, 1000 while there is credit, of which there is 500.
    #[test]
    fn credit_is_spent_beyond_the_rate_and_earned_below_it() {
        let mut bucket = Bucket::new(BucketProfile { rate: 100, burst: 1000, credit: 500 });
        // One each 10 ms is the rate, and pairs each 20 ms are too.
        (0..50).for_each(|n| assert_eq!(bucket.take(1, at(10 * n)), at(10 * n)));
        (0..50).for_each(|n| assert!(bucket.take(1, at(600 + n / 2 * 20)) <= at(601 + n / 2 * 20)));
        assert!(bucket.spent() <= 2, "{}", bucket.spent());
        // 400 in 400 ms: 40 of them are earned meanwhile.
        (0..400).for_each(|_| assert!(bucket.take(1, at(5000)) < at(5400)));
        assert!(bucket.spent().abs_diff(360) <= 1, "{}", bucket.spent());
        let on_credit = bucket.used.iter().find(|(work, _)| *work == Work::BurstCredit).unwrap().1;
        assert!(on_credit >= Duration::from_ms(399));
        // Two seconds at half of the rate earn 100.
        (0..100).for_each(|n| assert!(bucket.take(1, at(5400 + 20 * n)) >= at(5400)));
        assert!(bucket.spent().abs_diff(260) <= 2, "{}", bucket.spent());
        // No more than there is.
        (0..2000).for_each(|_| assert!(bucket.take(1, at(8000)) >= at(8000)));
        assert_eq!(bucket.spent(), 500);
        bucket.forget();
        assert_eq!((bucket.spent(), bucket.used.total()), (0, Duration::ZERO));
    }

    /// An access that comes 5 ms after the last one still waits 5 ms for its token.
    #[test]
    fn a_bucket_that_fills_between_two_accesses_is_in_use_all_the_time() {
        let mut bucket = Bucket::new(BucketProfile { rate: 100, burst: 1000, credit: 1 });
        let mut now = at(0);
        for _ in 0..100 {
            now = bucket.take(1, now) + Duration::from_ms(5);
        }
        assert_eq!(now, at(995));
        // The last token takes a millisecond to leave.
        assert_eq!(Instant::ZERO + bucket.used.total(), at(991));
    }

    /// Amazon's guide says of gp2: 5.4 million credits, which a burst to 3000 I/Os per second
    /// spends in half an hour or more.
    #[test]
    fn the_credit_of_a_small_volume_lasts_for_half_an_hour() {
        let mut bucket = Bucket::new(BucketProfile { rate: 300, burst: 3000, credit: 5_400_000 });
        let seconds = (0..3600).map(|_| bucket.take(3000, at(0)));
        let lasts =
            seconds.zip(0..).take_while(|(begin, second)| begin.as_ns() == second * SECOND_NS);
        let lasts: usize = lasts.count(); // 2700 of each 3000 are not replaced
        assert!(lasts.abs_diff(5_400_000 / 2700) <= 2, "{lasts} s");
    }

    /// Takes 60 tokens at `from` ms. Returns how many of them leave a millisecond after another.
    fn burst(bucket: &mut Bucket, from: u64) -> usize {
        let times: Vec<_> = (0..60).map(|_| bucket.take(1, at(from))).collect();
        times.windows(2).filter(|pair| pair[1].since(pair[0]) == Duration::from_ms(1)).count()
    }

    #[test]
    fn a_bucket_that_rests_fills_up_to_its_credit() {
        let mut bucket = Bucket::new(BucketProfile { rate: 100, burst: 1000, credit: 50 });
        let first = burst(&mut bucket, 0);
        assert_eq!(burst(&mut bucket, 100_000), first, "it is full again, and no fuller");
        assert!(burst(&mut bucket, 100_400) < first, "it had no time to fill");
    }

    #[test]
    fn an_access_larger_than_the_credit_waits_for_a_full_bucket_and_leaves_a_debt() {
        let mut bucket = Bucket::new(BucketProfile { rate: 100, burst: 1000, credit: 10 });
        assert_eq!(bucket.take(30, at(0)), at(0));
        // 20 tokens of debt and one more.
        assert_eq!(bucket.take(1, at(0)), at(210));
    }
}
