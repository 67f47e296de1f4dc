//! The depth of a device's queue, as a limit.
//!
//! # Choices
//!
//! - A depth is a limit if requests wait for a slot: for a tag, or before the driver because the
//!   device, its budget or its tags are used up. Where none wait, a deeper queue gains nothing. The
//!   mean number of commands alone does not tell: a slot is empty from the end of a command until
//!   the next one arrives.
//! - Each of several drives has a depth of its own: that of the busiest one may be the limit.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use blockyard::trace::Hold;

use super::evidence::Bottleneck;
use crate::figures::Figures;
use blockyard_devices::compare::USED_UP;
use blockyard_devices::profile::Device;
use blockyard_text::number::ratio;

/// The share of the life of requests from which their waits for a slot are worth naming, in
/// percent.
const MUCH_WAITING: f64 = 5.0;

/// How much of a depth commands take, on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occupied {
    /// Nearly all of it: that goes before what is used up of the host.
    Always,
    /// Most of it. Slots are empty while the host works for the next command.
    Mostly,
}

/// The depth of `device` as the limit of the run of `figures`, if requests wait for it and it is
/// `occupied`.
pub(super) fn limit(device: &Device, figures: &Figures, occupied: Occupied) -> Option<Bottleneck> {
    let of_all = f64::from(device.model.commands_max()?);
    debug_assert!(of_all > 0.0, "a device takes a command");
    let family = figures.family.own();
    let (commands, depth) = match (family.at_busiest_disk(), family.busiest_disk()) {
        (Some(commands), Some(of)) => (commands, of_all / f64::from(of.disks)),
        _ => (figures.at_device, of_all),
    };
    let percent = 100.0 * commands / depth;
    let is_full = 100.0 * commands >= USED_UP * depth;
    let enough = match occupied {
        Occupied::Always => is_full,
        Occupied::Mostly => percent >= 75.0,
    };
    (enough && waiting_percent(figures, is_full) >= MUCH_WAITING)
        .then_some(Bottleneck::Depth { commands, depth })
}

/// The share of the life of requests for which they wait for a slot. What waits before a full
/// device waits for it, whatever held queues. Complete requests do not count: a job that waits for
/// a tag cannot reap them.
fn waiting_percent(figures: &Figures, is_full: bool) -> f64 {
    let life = &figures.life_ns;
    let of_slots = [Hold::Budget, Hold::Tag, Hold::Device, Hold::Host];
    let is_held = figures.holds.main().is_some_and(|hold| of_slots.contains(&hold));
    let before_driver = if is_full || is_held { life.queued + life.dequeued } else { 0.0 };
    100.0 * ratio(life.waiting_for_tag + before_driver, life.total() - life.not_reaped)
}
