//! From latencies to depths, as kyber did it from Linux 4.12 to 4.19.
//!
//! A read or synchronous write whose device latency exceeds its target begins a window of 10 ms.
//! When a window ends, another of 100 ms follows while a domain misses its target or others have
//! fewer tokens than they could have. Completions within the window are measured, the one that
//! began it included.
//!
//! The health of a domain follows from its mean device latency: great up to half of the target,
//! good up to the target, awful from twice the target on, bad in between.
//!
//! If only one of reads and synchronous writes is healthy (great or good), it gives up tokens: half
//! of them (great beside awful), a quarter (great beside bad, good beside awful) or an eighth (good
//! beside bad), at least one. The other gets one more, and two if it is awful beside great. If both
//! are healthy or neither is, nothing changes. A domain beside one without completions gets one
//! more.
//!
//! Others with completions get two more, one more, a quarter less (at least one) or half when the
//! better of the two is great, good, bad or awful. If neither of the two had completions, others
//! get two more.

use super::adjust::{Adjust, Took};
use super::domain::{DOMAINS, Domain, Tokens};
use crate::policy::KyberTunables;
use crate::time::{Duration, Instant};

/// The length of the first window.
const FIRST_WINDOW: Duration = Duration::from_ms(10);
/// The length of further windows.
const WINDOW: Duration = Duration::from_ms(100);

/// The health of a domain, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    Awful,
    Bad,
    Good,
    Great,
}

impl Status {
    const fn is_well(self) -> bool {
        matches!(self, Self::Good | Self::Great)
    }
}

/// Device latencies of one domain within a window.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    sum_ns: u64,
    count: u64,
}

impl Measured {
    /// Returns the health; `None` if nothing completed.
    fn status(self, target: Duration) -> Option<Status> {
        let mean = self.sum_ns.checked_div(self.count)?;
        let target = target.as_ns();
        Some(match () {
            () if mean >= target.saturating_mul(2) => Status::Awful,
            () if mean > target => Status::Bad,
            () if mean <= target / 2 => Status::Great,
            () => Status::Good,
        })
    }
}

/// The measurements of the current window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    read_target: Duration,
    write_target: Duration,
    measured: [Measured; DOMAINS],
}

impl Steps {
    pub(super) fn new(tunables: &KyberTunables) -> Self {
        Self {
            read_target: tunables.read_latency,
            write_target: tunables.write_latency,
            measured: [Measured::default(); DOMAINS],
        }
    }
}

impl Adjust for Steps {
    fn completed(&mut self, domain: Domain, took: Took, now: Instant, due: &mut Option<Instant>) {
        let is_slow = match domain {
            Domain::Read => took.device > self.read_target,
            Domain::Write => took.device > self.write_target,
            Domain::Discard | Domain::Other => false,
        };
        if due.is_none() && is_slow {
            *due = Some(now + FIRST_WINDOW);
        }
        if due.is_some() {
            let measured = &mut self.measured[domain.index()];
            measured.sum_ns = measured.sum_ns.saturating_add(took.device.as_ns());
            measured.count += 1;
        }
    }

    fn adjust(&mut self, at: Instant, tokens: &mut [Tokens; DOMAINS]) -> Option<Instant> {
        let [reads, writes, _, others] = core::mem::take(&mut self.measured);
        let read = reads.status(self.read_target);
        let write = writes.status(self.write_target);
        let [of_reads, of_writes, _, of_others] = tokens;
        of_reads.resize(depth_beside(of_reads.depth(), read, write));
        of_writes.resize(depth_beside(of_writes.depth(), write, read));
        of_others.resize(depth_of_others(of_others.depth(), read.max(write), others.count > 0));
        let unwell = [read, write].into_iter().flatten().any(|status| !status.is_well());
        (unwell || !of_others.is_whole()).then(|| at + WINDOW)
    }
}

/// Returns the depth of a domain with health `this` beside one with health `other`.
fn depth_beside(depth: u32, this: Option<Status>, other: Option<Status>) -> u32 {
    let Some(this) = this else { return depth };
    let Some(other) = other else { return add_tokens(depth, 1) };
    match (this, other) {
        (Status::Great, Status::Awful) => depth / 2,
        (Status::Great, Status::Bad) | (Status::Good, Status::Awful) => cut_part(depth, 4),
        (Status::Good, Status::Bad) => cut_part(depth, 8),
        (Status::Awful, Status::Great) => add_tokens(depth, 2),
        (this, other) if this.is_well() == other.is_well() => depth,
        _ => add_tokens(depth, 1),
    }
}

/// Returns the depth of others; `better` is the better health of reads and synchronous writes.
fn depth_of_others(depth: u32, better: Option<Status>, completed: bool) -> u32 {
    match better {
        None => add_tokens(depth, 2),
        Some(_) if !completed => depth,
        Some(Status::Great) => add_tokens(depth, 2),
        Some(Status::Good) => add_tokens(depth, 1),
        Some(Status::Bad) => cut_part(depth, 4),
        Some(Status::Awful) => depth / 2,
    }
}

/// Adds `tokens` to `depth`; [depth-within-bounds] caps the result.
const fn add_tokens(depth: u32, tokens: u32) -> u32 {
    depth.saturating_add(tokens)
}

/// Subtracts one `part`th of `depth`, at least one.
fn cut_part(depth: u32, part: u32) -> u32 {
    depth - (depth / part).max(1)
}

#[cfg(test)]
mod tests;
