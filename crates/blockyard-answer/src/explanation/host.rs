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

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::evidence::{Evidence, IdlePart, IdleTime, Pair, TransferPeriod};
use super::run::{EQUAL, MUCH_SLOWER, Run};
use crate::host::HostFigures;
use blockyard_text::number::ratio;

/// A difference of counts for each transfer from which it is worth naming.
const VISIBLE_COUNT: f64 = 0.05;
/// The share of the period from which a difference of times is worth naming.
const VISIBLE_SHARE: f64 = 0.01;

/// Why a transfer takes longer, or less long, under one design.
pub(super) fn transfer_period(low: &HostFigures, high: &HostFigures) -> Evidence {
    let idle_ns = Pair::of(low, high, |host| host.transfer_ns.idle);
    Evidence::TransferPeriod(TransferPeriod {
        period_ns: Pair::of(low, high, HostFigures::period_ns),
        work_ns: Pair::of(low, high, |host| host.transfer_ns.work),
        idle_ns,
        absent_ns: Pair::of(low, high, |host| host.transfer_ns.absent),
        ios: Pair::of(low, high, |host| host.per_transfer.ios),
        idle_of_io_ns: Pair::of(low, high, HostFigures::idle_of_io_ns),
        in_idle_time: idle_parts(low, high, idle_ns),
    })
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
pub(super) fn idle(low: &Run<'_>, high: &Run<'_>) -> Option<Evidence> {
    let low_host = low.1.mmc.as_ref()?;
    let high_host = high.1.mmc.as_ref()?;
    let idle_ns = Pair { low: low_host.transfer_ns.idle, high: high_host.transfer_ns.idle };
    let ios = Pair { low: low_host.per_transfer.ios, high: high_host.per_transfer.ios };
    (ios.is_shared() && spread(idle_ns) >= MUCH_SLOWER).then(|| Evidence::IdleBetweenTransfers {
        low: idle_time(low.0, low_host),
        high: idle_time(high.0, high_host),
    })
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

impl Pair {
    /// Of I/Os for each transfer: whether most transfers carry several under either design.
    pub(super) fn is_shared(&self) -> bool {
        self.low >= MUCH_SLOWER || self.high >= MUCH_SLOWER
    }
}
