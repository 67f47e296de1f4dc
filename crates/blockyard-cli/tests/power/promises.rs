//! The promises of a server at a point in time: the values that each unit may have after a power
//! cut.
//!
//! A write, or a zeroing, is *kept* if it was answered with FUA, or before a flush was sent that
//! was answered; with a server whose answers are durable, if it was answered. A value is *stale* if
//! its write was answered before a kept write to the same unit was sent: that order is certain. Of
//! writes that were in flight together, either may be the last one.
//!
//! After a power cut each unit has the whole value of a write that was sent and is not stale.

use super::history::{Change, Request, mark};

/// A value that a unit may have.
#[derive(Debug)]
struct Value {
    request: Option<usize>,
    /// The word of which the unit consists.
    word: u64,
    answered: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Promises<'a> {
    requests: &'a [Request],
    life: u64,
    answers_are_durable: bool,
    /// By unit.
    values: Vec<Vec<Value>>,
    /// The instant at which each request was sent.
    sent: Vec<usize>,
    /// Changes that were answered at some instant and are not kept yet.
    answered: Vec<(usize, usize)>,
}

impl<'a> Promises<'a> {
    /// `before` are the words of the units before the first request.
    pub(crate) fn new(
        requests: &'a [Request],
        life: u64,
        before: &[u64],
        answers_are_durable: bool,
    ) -> Self {
        let value = |&word| vec![Value { request: None, word, answered: Some(0) }];
        let values = before.iter().map(value).collect();
        let sent = vec![0; requests.len()];
        Self { requests, life, answers_are_durable, values, sent, answered: Vec::new() }
    }

    /// A request is sent at the instant `now`. Instants are above 0 and increase.
    pub(crate) fn send(&mut self, number: usize, now: usize) {
        self.sent[number] = now;
        let Request { change, units, .. } = &self.requests[number];
        for unit in units.clone() {
            let word = if *change == Change::Write { mark(self.life, number, unit) } else { 0 };
            let value = Value { request: Some(number), word, answered: None };
            self.values_of(unit).push(value);
        }
    }

    pub(crate) fn answer(&mut self, number: usize, now: usize) {
        let Request { change, units, fua } = &self.requests[number];
        if *change == Change::Flush {
            let sent = self.sent[number];
            let answered = core::mem::take(&mut self.answered);
            let (kept, rest) = answered.into_iter().partition(|(at, _)| *at < sent);
            self.answered = rest;
            let kept: Vec<_> = kept;
            return kept.into_iter().for_each(|(_, number)| self.keep(number));
        }
        for unit in units.clone() {
            let values = self.values_of(unit).iter_mut();
            values.filter(|value| value.request == Some(number)).for_each(|value| {
                value.answered = Some(now);
            });
        }
        match *fua || self.answers_are_durable {
            true => self.keep(number),
            false => self.answered.push((now, number)),
        }
    }

    /// Drops the values that are stale now.
    fn keep(&mut self, number: usize) {
        let sent = self.sent[number];
        for unit in self.requests[number].units.clone() {
            self.values_of(unit).retain(|value| value.answered.is_none_or(|at| at >= sent));
        }
    }

    /// Whether `unit` may consist of `word` now.
    ///
    /// # Errors
    ///
    /// It may not.
    pub(crate) fn check(&self, unit: u64, word: u64) -> Result<(), String> {
        let values = &self.values[usize::try_from(unit).expect("number of a unit")];
        if values.iter().any(|value| value.word == word) {
            return Ok(());
        }
        let allowed: Vec<_> = values.iter().map(|value| format!("{:x}", value.word)).collect();
        Err(format!("unit {unit} is {word:x}, and may only be one of {}", allowed.join(", ")))
    }

    fn values_of(&mut self, unit: u64) -> &mut Vec<Value> {
        &mut self.values[usize::try_from(unit).expect("number of a unit")]
    }
}
