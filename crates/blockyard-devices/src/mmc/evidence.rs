//! Evidence of MMC hosts: what passes from one transfer to the next.
//!
//! # Choices
//!
//! - On an MMC host the command rate is explained by what passes from one transfer to the next: bus
//!   or card busy, both idle while requests wait, no request at all. Where the idle part differs,
//!   everything between two transfers is named that differs the same way: CMD13s, memory mapped or
//!   unmapped on an idle bus, wake-ups that the idle bus waited for.
//! - Where I/Os share transfers, the idle part is given for each I/O too: also where the rates are
//!   equal or another factor is named, if idle parts differ.
//! - A host that always has a request is limited by the larger part of the time: bus and card busy,
//!   or what the host does between transfers.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::figures::HostFigures;
use crate::charges::{HANDOVER, INTERRUPTS, Resource};
use crate::compare::{EQUAL, MUCH_SLOWER, Pair, RunLoad, USED_UP, listed};
use crate::family::LimitingPart;
use blockyard_text::number::{digits, nanoseconds, percent, ratio};
use core::fmt;
use serde::Serialize;

/// A difference of counts for each transfer from which it is worth naming.
const VISIBLE_COUNT: f64 = 0.05;
/// The share of the period from which a difference of times is worth naming.
const VISIBLE_SHARE: f64 = 0.01;

/// The part of an MMC host, or the card, that limits a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MmcLimit {
    /// The memory of a card.
    CardMemory {
        /// The share of the time in which it programs pages or reads ahead.
        percent: f64,
    },
    /// The bus of an MMC host and its card.
    BusAndCard {
        /// The share of the time in which either is busy.
        percent: f64,
    },
    /// What an MMC host does between transfers.
    BetweenTransfers {
        /// The share of the time in which bus and card are idle while requests wait.
        idle_percent: f64,
    },
}

/// A fact about MMC hosts behind a difference. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MmcEvidence {
    /// The time from one transfer of an MMC host to the next.
    TransferPeriod(TransferPeriod),
    /// Bus and card of two MMC hosts are idle for different times, and I/Os share transfers.
    IdleBetweenTransfers {
        /// The design with fewer IOPS, or the first of equals.
        low: IdleTime,
        /// The design that it is compared with.
        high: IdleTime,
    },
}

/// The mean time from one transfer of an MMC host to the next, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransferPeriod {
    /// The whole time.
    period_ns: Pair,
    /// The bus or the card is busy.
    work_ns: Pair,
    /// Both are idle while requests wait.
    idle_ns: Pair,
    /// There is no request.
    absent_ns: Pair,
    /// I/Os for each transfer.
    pub ios: Pair,
    /// The idle time for each I/O.
    idle_of_io_ns: Pair,
    /// What happens more often, or takes longer, under the design with more idle time.
    in_idle_time: Vec<IdlePart>,
}

/// Something in the idle time between two transfers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum IdlePart {
    /// CMD13s that ask for the card's state.
    Status {
        /// For each transfer.
        count: Pair,
    },
    /// Memory is mapped while the bus is idle.
    Map {
        /// For each transfer.
        ns: Pair,
    },
    /// Memory is unmapped while the bus is idle.
    Unmap {
        /// For each transfer.
        ns: Pair,
    },
    /// The idle bus waits for a thread of the driver to wake up.
    WakeUps {
        /// For each transfer.
        count: Pair,
    },
}

/// The idle time of an MMC host.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleTime {
    /// The design.
    pub design: String,
    /// Idle time between two transfers.
    idle_ns: f64,
    /// I/Os for each transfer.
    pub ios: f64,
    /// The idle time for each I/O.
    idle_of_io_ns: f64,
    /// The whole time for each I/O.
    pub io_ns: f64,
}

/// Why a transfer takes longer, or less long, under one design.
pub(crate) fn transfer_period(low: &HostFigures, high: &HostFigures) -> TransferPeriod {
    let idle_ns = Pair::of(low, high, |host| host.transfer_ns.idle);
    TransferPeriod {
        period_ns: Pair::of(low, high, HostFigures::period_ns),
        work_ns: Pair::of(low, high, |host| host.transfer_ns.work),
        idle_ns,
        absent_ns: Pair::of(low, high, |host| host.transfer_ns.absent),
        ios: Pair::of(low, high, |host| host.per_transfer.ios),
        idle_of_io_ns: Pair::of(low, high, HostFigures::idle_of_io_ns),
        in_idle_time: idle_parts(low, high, idle_ns),
    }
}

/// What is in the idle time of the host that has more of it.
fn idle_parts(low: &HostFigures, high: &HostFigures, idle_ns: Pair) -> Vec<IdlePart> {
    if spread(idle_ns) < EQUAL {
        return Vec::new();
    }
    let sign = (idle_ns.low - idle_ns.high).signum();
    let visible_ns = low.period_ns() * VISIBLE_SHARE;
    let status = Pair::of(low, high, |host| host.per_transfer.status);
    let map = Pair::of(low, high, |host| host.transfer_ns.map);
    let unmap = Pair::of(low, high, |host| host.transfer_ns.unmap);
    let wake_ups = Pair::of(low, high, |host| host.per_transfer.awaited_wakeups);
    let parts = [
        (IdlePart::Status { count: status }, status, VISIBLE_COUNT),
        (IdlePart::Map { ns: map }, map, visible_ns),
        (IdlePart::Unmap { ns: unmap }, unmap, visible_ns),
        (IdlePart::WakeUps { count: wake_ups }, wake_ups, VISIBLE_COUNT),
    ];
    let told =
        parts.into_iter().filter(|(_, pair, visible)| (pair.low - pair.high) * sign >= *visible);
    told.map(|(part, ..)| part).collect()
}

/// How long bus and card are idle under two designs, if that differs and I/Os share transfers.
pub(crate) fn idle(
    low: (&str, &HostFigures),
    high: (&str, &HostFigures),
) -> Option<(IdleTime, IdleTime)> {
    let idle_ns = Pair { low: low.1.transfer_ns.idle, high: high.1.transfer_ns.idle };
    let ios = Pair { low: low.1.per_transfer.ios, high: high.1.per_transfer.ios };
    let are_named = are_shared(ios) && spread(idle_ns) >= MUCH_SLOWER;
    are_named.then(|| (idle_time(low.0, low.1), idle_time(high.0, high.1)))
}

/// The idle time between two transfers under a design.
fn idle_time(design: &str, host: &HostFigures) -> IdleTime {
    IdleTime {
        design: design.to_owned(),
        idle_ns: host.transfer_ns.idle,
        ios: host.per_transfer.ios,
        idle_of_io_ns: host.idle_of_io_ns(),
        io_ns: ratio(host.period_ns(), host.per_transfer.ios),
    }
}

/// How far apart two times are, as a factor.
fn spread(ns: Pair) -> f64 {
    debug_assert!(ns.low >= 0.0 && ns.high >= 0.0, "a time is not negative");
    let factor = ratio(ns.low, ns.high);
    factor.max(1.0 / factor)
}

/// Of I/Os for each transfer: whether most transfers carry several under either design.
fn are_shared(ios: Pair) -> bool {
    ios.low >= MUCH_SLOWER || ios.high >= MUCH_SLOWER
}

impl fmt::Display for TransferPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { period_ns, work_ns, idle_ns, absent_ns, ios, idle_of_io_ns, in_idle_time } =
            self;
        let parts = [
            period_part("busy", work_ns, "", period_ns),
            period_part("idle", idle_ns, " while requests wait", period_ns),
            period_part("without a request", absent_ns, "", period_ns),
        ];
        let mut text = format!(
            "A transfer starts {} after the previous one: the bus and the card are {}.",
            period_ns.instead_ns(),
            listed(parts.into_iter().flatten()),
        );
        if !in_idle_time.is_empty() {
            let named = listed(in_idle_time.iter().map(idle_part));
            text += &format!(" Between two transfers there are {named}.");
        }
        if are_shared(*ios) {
            text += &format!(
                " Each transfer carries {}: the idle time per I/O is {}.",
                ios.instead(digits, " I/Os"),
                idle_of_io_ns.instead_ns(),
            );
        }
        f.write_str(&text)
    }
}

/// A part of the period, if it is at least a hundredth of it under a design.
fn period_part(before: &str, ns: &Pair, behind: &str, period_ns: &Pair) -> Option<String> {
    let is_visible = 100.0 * ns.low >= period_ns.low || 100.0 * ns.high >= period_ns.high;
    is_visible.then(|| format!("{before} for {}{behind}", ns.instead_ns()))
}

/// A part that differs: both figures are written even if they look the same.
fn idle_part(part: &IdlePart) -> String {
    match part {
        IdlePart::Status { count } => told(count, digits, "CMD13s"),
        IdlePart::Map { ns } => told(ns, nanoseconds, "of mapping on an idle bus"),
        IdlePart::Unmap { ns } => told(ns, nanoseconds, "of unmapping on an idle bus"),
        IdlePart::WakeUps { count } => told(count, digits, "wake-ups that the bus waits for"),
    }
}

/// Both figures of a pair, the one that is explained first.
fn told(pair: &Pair, write: fn(f64) -> String, what: &str) -> String {
    format!("{} {what} instead of {}", write(pair.low), write(pair.high))
}

impl fmt::Display for IdleTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} under {} ({} I/Os per transfer: {} of {} per I/O)",
            nanoseconds(self.idle_ns),
            self.design,
            digits(self.ios),
            nanoseconds(self.idle_of_io_ns),
            nanoseconds(self.io_ns),
        )
    }
}

/// What a card does for a run of this `load`.
pub(crate) fn resources(load: &RunLoad) -> Vec<Resource> {
    let reads = (load.read_bytes > 0).then_some(Resource::CardReads);
    let writes = (load.written_bytes > 0).then_some(Resource::CardWrites);
    reads.into_iter().chain(writes).collect()
}

/// What limits a run of this `load`, if that is its MMC `host` or the card.
pub(crate) fn limit(host: &HostFigures, load: &RunLoad) -> Option<MmcLimit> {
    let busy = load.device_busy_percent;
    debug_assert!(busy >= 0.0, "a device that is busy for {busy} % of the time");
    if host.memory_percent >= USED_UP {
        return Some(MmcLimit::CardMemory { percent: host.memory_percent });
    }
    if busy >= USED_UP {
        return Some(MmcLimit::BusAndCard { percent: busy });
    }
    let present = 100.0 - host.absent_percent;
    let idle_percent = present - busy;
    (present >= USED_UP).then_some(if busy >= idle_percent {
        MmcLimit::BusAndCard { percent: busy }
    } else {
        MmcLimit::BetweenTransfers { idle_percent }
    })
}

impl LimitingPart for MmcLimit {
    fn is_told_by_command_rates(&self) -> bool {
        match self {
            Self::BetweenTransfers { .. } => true,
            Self::BusAndCard { percent } => *percent < USED_UP,
            Self::CardMemory { .. } => false,
        }
    }

    fn resources(&self, load: &RunLoad) -> Vec<Resource> {
        match self {
            Self::CardMemory { .. } | Self::BusAndCard { .. } => resources(load),
            Self::BetweenTransfers { .. } => [HANDOVER, INTERRUPTS].concat(),
        }
    }
}

impl fmt::Display for MmcLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CardMemory { percent: busy } => write!(
                f,
                "the card's memory is the bottleneck (it programs pages or reads ahead {} of the time)",
                percent(*busy)
            ),
            Self::BusAndCard { percent: busy } => write!(
                f,
                "the bus and the card are the bottleneck (busy {} of the time)",
                percent(*busy)
            ),
            Self::BetweenTransfers { idle_percent } => write!(
                f,
                "the host's work between transfers is the bottleneck (bus and card are idle {} of the time \
                 while requests wait)",
                percent(*idle_percent)
            ),
        }
    }
}

impl fmt::Display for MmcEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TransferPeriod(period) => period.fmt(f),
            Self::IdleBetweenTransfers { low, high } => write!(
                f,
                "Between two transfers the bus and the card are idle for {low} and for {high}."
            ),
        }
    }
}
