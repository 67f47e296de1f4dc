//! The feed of a task: its source, and the I/O that comes next.

use super::source::{Next, NextIo, Source, When};
use blockyard::time::Instant;
use blockyard::unit::QueueId;

/// The source of a task, and the next I/O.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) source: Source,
    next: Next,
    /// The queue of the I/O before the next one.
    last_queue: QueueId,
}

impl Feed {
    pub(super) fn new(source: Source) -> Self {
        let last_queue = source.first_queue();
        Self { source, next: Next::Unknown, last_queue }
    }

    /// Returns the next I/O, if it is known.
    pub(super) const fn next(&self) -> Option<&NextIo> {
        match &self.next {
            Next::Io(io) => Some(io),
            Next::Unknown | Next::End => None,
        }
    }

    /// Whether no I/O will come from here any more.
    pub(super) const fn has_ended(&self) -> bool {
        matches!(self.next, Next::End)
    }

    /// Ends the feed. An I/O that was drawn and not submitted is dropped.
    pub(super) const fn end(&mut self) {
        self.next = Next::End;
    }

    /// Draws the next I/O, unless it is known already. It is issued at `now` or later; the rates of
    /// the job count from `begun`.
    #[inline]
    pub(super) fn draw(&mut self, now: Instant, begun: Instant) {
        if matches!(self.next, Next::Unknown) {
            self.draw_next(now, begun);
        }
    }

    #[inline(never)]
    fn draw_next(&mut self, now: Instant, begun: Instant) {
        self.next = match &mut self.source {
            Source::Generated(generated) => generated.next(now, begun),
            Source::Recorded(recorded) => recorded.next(),
        };
    }

    /// Returns the earliest instant for the next I/O, for a task that pauses until `pause_until`
    /// and whose rates count from `begun`. Returns `None` if the I/O must wait for a completion,
    /// and zero if none is known.
    pub(super) fn next_due(&mut self, pause_until: Instant, begun: Instant) -> Option<Instant> {
        let Next::Io(io) = &self.next else { return Some(Instant::ZERO) };
        match (io.when, &mut self.source) {
            (When::Paced, Source::Generated(generated)) => {
                // The rate and the pause both hold the I/O back.
                let paced = generated.paced(io.kind, begun);
                Some(paced.max(pause_until))
            }
            (When::Recorded(due), Source::Recorded(recorded)) => recorded.due(due),
            _ => unreachable!("a task should issue only I/Os of its own source"),
        }
    }

    /// Takes the next I/O, which the queue has accepted.
    ///
    /// # Panics
    ///
    /// Panics if none is known.
    pub(super) fn take(&mut self) -> NextIo {
        let Next::Io(io) = core::mem::replace(&mut self.next, Next::Unknown) else {
            panic!("a submitted bio should come from `next_bio`");
        };
        self.last_queue = io.queue;
        io
    }

    /// Takes the next I/O of a job, which needs no queue, and draws the one after it, as in
    /// [`Self::draw`].
    pub(super) fn pass(&mut self, now: Instant, begun: Instant) -> NextIo {
        let io = self.take();
        if let Source::Generated(generated) = &mut self.source {
            generated.submitted(&io);
        }
        self.draw(now, begun);
        io
    }

    /// Returns the queue of the I/O that was taken last.
    pub(super) const fn last_queue(&self) -> QueueId {
        self.last_queue
    }

    /// Returns the queue of the next I/O, or if that is not known, of the one before.
    pub(super) fn likely_queue(&self) -> QueueId {
        self.next().map_or(self.last_queue, |io| io.queue)
    }
}
