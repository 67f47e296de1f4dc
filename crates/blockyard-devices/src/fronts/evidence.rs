//! Evidence of drives: the part of the front end or of the medium that limits a run, and its work.
//!
//! # Choices
//!
//! - A medium is used up if parts of it are occupied nearly all of the time. It is used up too if
//!   writes wait for room in it for half of the time or more: until then its cache may have hidden
//!   how slow it is.
//! - Of several kinds of parts that are used up, the one is named for which the others wait.
//! - Work that no command asks for is the cause if it takes a third of the busy time of those parts
//!   or more: a full cache of single-level cells, or collection; of both, the one that takes more.
//!   Folding in idle time is no part of that busy time: it ends when a command arrives.
//! - If writes wait for room in the medium for much of the time, the medium is named, not the
//!   depth, as a queue fills up meanwhile: unless jobs pause for more of their time than writes
//!   wait.
//! - Dies are a limit before all of them are always in use, because commands are spread unevenly
//!   over them. They are one if there are twice as many commands as dies or more, which wait for
//!   dies for most of their time.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::figures::{DriveFigures, PartsFigures};
use super::front::FrontPart;
use super::profile::{DriveProfile, MEDIA_WORDS};
use crate::charges::Resource;
use crate::compare::{RunLoad, USED_UP};
use crate::family::{Limit, LimitingPart, link};
use crate::load::{MediumCause, MediumLimit, Parts, Work};
use crate::medium::{CauseWords, MediumWords};
use blockyard_text::number::percent;
use core::fmt;
use serde::Serialize;

/// The share of the time for which writes wait that makes a medium used up, and that of commands
/// for which they wait for dies, in percent.
const MOSTLY: f64 = 50.0;
/// The share of the busy time from which extra work is the cause.
const MUCH_EXTRA: f64 = 1.0 / 3.0;
/// How many commands for each die are many.
const MANY_COMMANDS: f64 = 2.0;
/// The share of the time for which writes wait for the medium from which that is worth naming, in
/// percent.
const MUCH_FULL: f64 = 15.0;
/// The share from which work or data is worth naming, in percent.
const VISIBLE_PERCENT: f64 = 1.0;

/// The part of a drive that limits a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DriveLimit {
    /// The link to the device.
    Link {
        /// Utilisation of the link.
        percent: f64,
    },
    /// What takes the commands of a drive one at a time.
    Controller {
        /// What that is.
        part: FrontPart,
        /// The share of the time in which it takes commands.
        percent: f64,
    },
    /// The medium of a drive.
    Medium(MediumLimit),
}

impl LimitingPart for DriveLimit {
    fn is_of_disk(&self) -> bool {
        true
    }

    fn resources(&self, _load: &RunLoad) -> Vec<Resource> {
        match self {
            Self::Link { .. } => vec![Resource::Link],
            Self::Controller { .. } => vec![Resource::Controller],
            Self::Medium(limit) => resources_of_limit(limit),
        }
    }
}

impl fmt::Display for DriveLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link { percent } => f.write_str(&link(*percent)),
            Self::Controller { part, percent: used } => {
                write!(f, "{} is the bottleneck ({} in use)", part.name(), percent(*used))
            }
            Self::Medium(limit) => limit.fmt(f),
        }
    }
}

/// What limits a run of this `load` on `drive`, if that is a part of it.
pub(crate) fn limit(
    drive: &DriveProfile,
    used: &DriveFigures,
    load: &RunLoad,
) -> Option<Limit<DriveLimit>> {
    let commands = used.at_device;
    debug_assert!(commands >= 0.0, "{commands} commands at a drive");
    let part = drive.front.part();
    let limit = match used {
        _ if is_used_up(used) => medium_limit(used, commands).map(DriveLimit::Medium),
        _ if used.link_percent >= USED_UP => Some(DriveLimit::Link { percent: used.link_percent }),
        _ if used.controller_percent >= USED_UP => {
            Some(DriveLimit::Controller { part, percent: used.controller_percent })
        }
        _ if used.engine_percent >= USED_UP => {
            Some(DriveLimit::Controller { part, percent: used.engine_percent })
        }
        // While writes wait for room in the medium, the queue fills up: its depth is no cause.
        _ if used.load.buffer_full_percent >= MUCH_FULL => {
            if load.pausing_percent > used.load.buffer_full_percent {
                return Some(Limit::Jobs);
            }
            medium_limit(used, commands).map(DriveLimit::Medium)
        }
        _ if queued_percent(used, commands).is_some() => {
            medium_limit(used, commands).map(DriveLimit::Medium)
        }
        _ => None,
    };
    limit.map(Limit::Part)
}

/// Returns the resources that the commands of a drive spend their time on.
pub(crate) fn resources(drive: &DriveFigures) -> Vec<Resource> {
    let of_parts = drive.load.parts.iter().flat_map(|of| {
        let medium = (of.parts == Parts::Medium).then_some(Resource::Parts(of.parts));
        of.work.iter().map(|(work, _)| Resource::Work(*work)).chain(medium)
    });
    of_parts.collect()
}

/// Returns the resources whose time limits a run on such a medium.
fn resources_of_limit(limit: &MediumLimit) -> Vec<Resource> {
    let work = limit.work.iter().map(|(work, _)| Resource::Work(*work));
    let room = (limit.buffer_full_percent > 0.0).then_some(Resource::Room);
    work.chain([Resource::Parts(limit.parts)]).chain(room).collect()
}

/// Whether the medium of a drive is used up.
fn is_used_up(drive: &DriveFigures) -> bool {
    drive.load.parts.iter().any(is_occupied) || drive.load.buffer_full_percent >= MOSTLY
}

fn is_occupied(parts: &PartsFigures) -> bool {
    in_demand(parts) >= USED_UP
}

/// The share of the time for which `parts` are occupied with other work than that of idle time.
fn in_demand(parts: &PartsFigures) -> f64 {
    let idle = parts.work.iter().filter(|(work, _)| *work == Work::IdleFolding);
    parts.percent - idle.map(|(_, percent)| percent).sum::<f64>()
}

/// The share of their time for which `commands` wait for dies, if that limits them.
fn queued_percent(drive: &DriveFigures, commands: f64) -> Option<f64> {
    let dies = drive.load.parts.iter().find(|of| of.parts == Parts::Dies)?;
    let are_many = commands >= MANY_COMMANDS * f64::from(dies.units);
    let waited = drive.load.waited_percent;
    (are_many && waited >= MOSTLY).then_some(waited)
}

/// How the medium limits a run with `commands` at the device, on average; `None` if it has no
/// parts.
fn medium_limit(drive: &DriveFigures, commands: f64) -> Option<MediumLimit> {
    debug_assert!(
        drive.load.buffer_full_percent <= 100.0,
        "writes should not wait more than always"
    );
    let all = &drive.load.parts;
    let busiest = || all.iter().max_by(|a, b| in_demand(a).total_cmp(&in_demand(b)));
    // Of dies at 99 % and channels at 96 %, the channels: they stand first, as dies wait for them.
    let of = all.iter().find(|parts| is_occupied(parts)).or_else(busiest)?;
    let visible = of
        .work
        .iter()
        .copied()
        .filter(|(work, percent)| *percent >= VISIBLE_PERCENT && *work != Work::IdleFolding);
    Some(MediumLimit {
        parts: of.parts,
        percent: in_demand(of),
        cause: cause(of),
        work: visible.collect(),
        buffer_full_percent: drive.load.buffer_full_percent,
        queued_percent: queued_percent(drive, commands),
        written: drive.load.written,
    })
}

/// What takes much of the busy time of `parts`.
fn cause(parts: &PartsFigures) -> MediumCause {
    debug_assert!(parts.percent <= 100.0, "{parts:?} should not be in use more than always");
    let extra = [MediumCause::FullCache, MediumCause::Collection].map(|cause| {
        let takes = parts.work.iter().filter(|(work, _)| words_of_work(*work).1 == cause);
        (cause, takes.map(|(_, percent)| percent).sum::<f64>())
    });
    let [larger, other] = extra;
    let larger = if other.1 > larger.1 { other } else { larger };
    let is_much = larger.1 > 0.0 && larger.1 >= MUCH_EXTRA * in_demand(parts);
    if is_much { larger.0 } else { MediumCause::Commands }
}

/// The words of the medium with such parts.
fn words_of_parts(parts: Parts) -> (&'static MediumWords, &'static str) {
    let all = MEDIA_WORDS.iter().flat_map(|words| words.parts.iter().map(move |row| (words, row)));
    let found = all.into_iter().find(|(_, (of, _))| *of == parts);
    found.map(|(words, (_, named))| (*words, *named)).expect("a medium should name its parts")
}

/// The name of `work`, and why there is such work.
fn words_of_work(work: Work) -> (&'static str, MediumCause) {
    let mut all = MEDIA_WORDS.iter().flat_map(|words| words.work);
    let found = all.find(|(of, ..)| *of == work);
    found.map(|&(_, name, cause)| (name, cause)).expect("a medium should name its work")
}

/// A clause that says how the medium is the bottleneck.
impl fmt::Display for MediumLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, of_parts) = words_of_parts(self.parts);
        let CauseWords { subject, units, moved } = (words.of_cause)(self);
        let named = subject.unwrap_or(of_parts);
        let full = self.buffer_full_percent;
        let waits = (full >= VISIBLE_PERCENT)
            .then(|| format!("the {} is full {} of the time", words.room, percent(full)));
        let queued = self
            .queued_percent
            .map(|waited| format!("commands queue for the dies {} of their time", percent(waited)));
        let used = format!("{units}{} in use{}", percent(self.percent), shares(&self.work));
        let details = waits.into_iter().chain(queued).chain(moved).chain([used]);
        write!(f, "{named} the bottleneck ({})", details.collect::<Vec<_>>().join("; "))
    }
}

/// The share of each kind of work, behind a colon.
fn shares(work: &[(Work, f64)]) -> String {
    let shares =
        work.iter().map(|(work, share)| format!("{} {}", percent(*share), words_of_work(*work).0));
    let shares: Vec<_> = shares.collect();
    if shares.is_empty() { String::new() } else { format!(": {}", shares.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A work or a kind of parts that two media name would have the name of the first one.
    #[test]
    fn each_work_and_each_kind_of_parts_is_named_by_one_medium() {
        for work in Work::ALL {
            let named = MEDIA_WORDS.iter().flat_map(|words| words.work);
            assert_eq!(named.filter(|(of, ..)| *of == work).count(), 1, "{work:?}");
        }
        use Parts::{BytesLimit, Channels, Dies, Discards, Head, IosLimit, Medium};
        for parts in [Medium, Dies, Channels, Head, IosLimit, BytesLimit, Discards] {
            let named = MEDIA_WORDS.iter().flat_map(|words| words.parts);
            assert_eq!(named.filter(|(of, _)| *of == parts).count(), 1, "{parts:?}");
        }
    }
}
