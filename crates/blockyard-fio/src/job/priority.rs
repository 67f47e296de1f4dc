//! I/O priorities, of jobs and of single I/Os (`cmdprio_percentage`, `cmdprio_bssplit`).

use super::error::ValueFault;
use super::limits::BLOCK_BYTES_MAX;
use super::op::{Op, PerOp};
use super::value::{Parsed, Value};

/// I/O priority class, as in `ioprio_set(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityClass {
    /// None given: 0.
    None,
    /// Real time: 1.
    RealTime,
    /// Best effort: 2.
    BestEffort,
    /// Idle: 3.
    Idle,
}

/// An I/O priority: the class, and the level from 0 (first) to 7.
pub type Priority = (PriorityClass, u8);

/// The share of the I/Os of one length that have a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityShare {
    /// Length of the I/Os, bytes.
    pub len_bytes: u32,
    /// Percent of them.
    pub percent: u8,
    /// The priority; `None` means that of `cmdprio_class` and `cmdprio`.
    pub priority: Option<Priority>,
}

/// The priorities of single I/Os. An I/O without one has that of its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPriority {
    /// Percent of the I/Os, of any length; default 0.
    pub percent: PerOp<u8>,
    /// Their class; default [`PriorityClass::None`], which means real time.
    pub class: PerOp<PriorityClass>,
    /// Their level; default 0.
    pub(crate) level: PerOp<u8>,
    /// Shares by length; default none. Trims have none.
    pub shares: PerOp<Vec<PriorityShare>>,
}

impl Default for CommandPriority {
    fn default() -> Self {
        Self {
            percent: PerOp::all(0),
            class: PerOp::all(PriorityClass::None),
            level: PerOp::all(0),
            shares: PerOp::all(Vec::new()),
        }
    }
}

impl CommandPriority {
    /// Whether any I/O may have a priority of its own.
    #[must_use]
    pub fn is_used(&self) -> bool {
        let shares = self.shares.each().into_iter().any(|shares| !shares.is_empty());
        shares || self.percent.each().into_iter().any(|percent| *percent > 0)
    }

    /// Returns the priority of an I/O of `len_bytes` for a `draw` from 0 to 99; `None` if it has
    /// that of its job.
    #[must_use]
    pub fn of(&self, op: Op, len_bytes: u32, draw: u64) -> Option<Priority> {
        debug_assert!(draw < 100, "a draw of {draw} is not a percentage");
        if op == Op::Trim {
            return None;
        }
        let class = match *self.class.of(op) {
            PriorityClass::None => PriorityClass::RealTime,
            class => class,
        };
        let usual = (class, *self.level.of(op));
        if draw < u64::from(*self.percent.of(op)) {
            return Some(usual);
        }
        let mut end = 0;
        let of_length = self.shares.of(op).iter().filter(|share| share.len_bytes == len_bytes);
        for share in of_length {
            end += u64::from(share.percent);
            if draw < end {
                return Some(share.priority.unwrap_or(usual));
            }
        }
        None
    }
}

/// Returns a priority in Linux's encoding: the class from bit 13 up, the level below.
pub fn encoded(class: PriorityClass, level: Option<u8>) -> u16 {
    let class = match (class, level) {
        (PriorityClass::None, None) => 0,
        (PriorityClass::RealTime, _) => 1,
        (PriorityClass::BestEffort | PriorityClass::None, _) => 2,
        (PriorityClass::Idle, _) => 3,
    };
    class << 13 | u16::from(level.unwrap_or(0))
}

/// Reads a class from 0 to 3.
pub(super) fn class(value: Value<'_>) -> Parsed<PriorityClass> {
    Ok(match value.count(0, 3)? {
        0 => PriorityClass::None,
        1 => PriorityClass::RealTime,
        2 => PriorityClass::BestEffort,
        _ => PriorityClass::Idle,
    })
}

/// Reads a level from 0 to 7.
pub(super) fn level(value: Value<'_>) -> Parsed<u8> {
    value.count(0, 7).map(|level| u8::try_from(level).unwrap_or(7))
}

/// Reads `64k/40:1m/60`, or with classes and levels `64k/25/1/0:64k/75/3/7`. A hint may follow,
/// which is ignored.
pub(super) fn shares(value: Value<'_>) -> Parsed<Vec<PriorityShare>> {
    let shares = value.list(&[':'], 64, |entry| {
        let fields = entry.list(&['/'], 5, Ok)?;
        let len_bytes = entry.list(&['/'], 5, Ok)?[0].count_u32(1, BLOCK_BYTES_MAX)?;
        let percent = fields.get(1).copied().map_or(Ok(0), Value::percent)?;
        let priority = match (fields.get(2), fields.get(3)) {
            (None, None) => None,
            (Some(class_of), Some(level_of)) => Some((class(*class_of)?, level(*level_of)?)),
            _ => return Err(ValueFault::Incomplete("a level after the class")),
        };
        Ok(PriorityShare { len_bytes, percent, priority })
    })?;
    for share in &shares {
        let of_length = shares.iter().filter(|other| other.len_bytes == share.len_bytes);
        let sum = of_length.map(|other| u64::from(other.percent)).sum();
        if sum > 100 {
            return Err(ValueFault::NotAHundred { sum });
        }
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Parsed<Vec<PriorityShare>> {
        shares(Value { text: Some(text), kb_base: 1024 })
    }

    fn share(len_bytes: u32, percent: u8, priority: Option<Priority>) -> PriorityShare {
        PriorityShare { len_bytes, percent, priority }
    }

    #[test]
    fn shares_are_lengths_with_percentages_and_priorities() {
        let first = (PriorityClass::RealTime, 1);
        let idle = (PriorityClass::Idle, 2);
        assert_eq!(parsed("64k/40:1k/0"), Ok(vec![share(65536, 40, None), share(1024, 0, None)]));
        assert_eq!(
            parsed("64k/25/1/1:64k/75/3/2/6"),
            Ok(vec![share(65536, 25, Some(first)), share(65536, 75, Some(idle))])
        );
        assert_eq!(parsed("4k/60:4k/60"), Err(ValueFault::NotAHundred { sum: 120 }));
        assert!(parsed("4k/60:8k/60").is_ok(), "a percentage is of one length");
        assert!(parsed("4k/60/1").is_err());
        assert!(parsed("4k/60/4/0").is_err());
    }

    #[test]
    fn a_draw_decides_the_priority_of_an_io() {
        let shares = PerOp::all(parsed("4k/25/1/1:4k/50/3/2:8k/100").unwrap());
        let of_length = CommandPriority { shares, ..CommandPriority::default() };
        assert_eq!(of_length.of(Op::Read, 4096, 24), Some((PriorityClass::RealTime, 1)));
        assert_eq!(of_length.of(Op::Read, 4096, 25), Some((PriorityClass::Idle, 2)));
        assert_eq!(of_length.of(Op::Read, 4096, 75), None);
        assert_eq!(
            of_length.of(Op::Read, 8192, 99),
            Some((PriorityClass::RealTime, 0)),
            "the default class"
        );
        assert_eq!(of_length.of(Op::Read, 512, 0), None);
        assert_eq!(of_length.of(Op::Trim, 4096, 0), None);
        let percent = PerOp { read: 20, write: 0, trim: 0 };
        let of_any = CommandPriority { percent, ..CommandPriority::default() };
        assert!(of_any.of(Op::Read, 512, 19).is_some() && of_any.of(Op::Read, 512, 20).is_none());
        assert!(of_any.of(Op::Write, 512, 0).is_none());
    }
}
