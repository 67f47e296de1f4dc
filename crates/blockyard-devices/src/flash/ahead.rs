//! The read buffer: what the drive reads ahead of reads in sequence.
//!
//! A read that begins where an earlier one ended continues its stream. The drive then reads on, to
//! `read-ahead` bytes beyond it, and further each time when half of that has been asked for: with
//! 128 KiB, after the second read of 4 KiB, and then after each 16. A read of such data waits at
//! most until the data has left the flash. The drive follows `read-streams` streams. The one that
//! was read least recently makes room.
//!
//! Data is kept by its row. What has been written again since lies elsewhere, and is not found.

use crate::medium::CommandId;
use core::ops::Range;
use std::collections::VecDeque;

/// The buffer.
#[derive(Debug)]
pub(super) struct ReadAhead {
    /// Units that are read ahead at most; 0: none are.
    window: u64,
    /// Streams at most.
    most: usize,
    /// The streams, the one that was read least recently first.
    streams: VecDeque<Stream>,
    pieces: Vec<Piece>,
    /// Streams and pieces so far.
    numbers: u64,
}

/// A stream of reads.
#[derive(Debug)]
struct Stream {
    number: u64,
    /// The unit at which the next read begins.
    next: u64,
    /// The first unit that has not been read ahead.
    ahead: u64,
}

/// Units of a row that are read ahead.
#[derive(Debug)]
struct Piece {
    number: u64,
    stream: u64,
    row: u32,
    units: Range<u64>,
    /// Whether they have left the flash.
    is_there: bool,
    /// The reads that wait for that.
    waiting: Vec<CommandId>,
}

impl ReadAhead {
    /// Returns an empty buffer for `most` streams, each of `window` units.
    pub(super) const fn new(window: u64, most: usize) -> Self {
        debug_assert!(most > 0, "a drive follows a stream");
        Self { window, most, streams: VecDeque::new(), pieces: Vec::new(), numbers: 0 }
    }

    /// Notes a read of `units`. Returns the units to read ahead of it, if it continues a stream.
    pub(super) fn follow(&mut self, units: &Range<u64>) -> Option<Range<u64>> {
        if self.window == 0 {
            return None;
        }
        let at = self.streams.iter().position(|stream| stream.next == units.start);
        let Some(mut stream) = at.and_then(|at| self.streams.remove(at)) else {
            self.begin(units.end);
            return None;
        };
        self.drop_pieces(stream.number, units.start);
        stream.next = units.end;
        let from = stream.ahead.max(units.end);
        let to = units.end + self.window;
        let is_due = (to - from) * 2 >= self.window;
        stream.ahead = if is_due { to } else { from };
        self.streams.push_back(stream);
        is_due.then_some(from..to)
    }

    /// Begins a stream whose next read is that of unit `next`.
    fn begin(&mut self, next: u64) {
        if self.streams.len() == self.most
            && let Some(oldest) = self.streams.pop_front()
        {
            self.drop_pieces(oldest.number, u64::MAX);
        }
        let number = self.number();
        self.streams.push_back(Stream { number, next, ahead: next });
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Forgets the pieces of `stream` that are there and end before unit `before`.
    fn drop_pieces(&mut self, stream: u64, before: u64) {
        self.pieces
            .retain(|piece| piece.stream != stream || !piece.is_there || piece.units.end > before);
    }

    /// Notes that `units` of `row` are read ahead for the stream that was read last. Returns the
    /// number of the piece.
    pub(super) fn add(&mut self, row: u32, units: Range<u64>) -> u64 {
        debug_assert!(units.end - units.start <= self.window, "{units:?} are too many");
        let stream = self.streams.back().map_or(0, |stream| stream.number);
        let number = self.number();
        let waiting = Vec::new();
        self.pieces.push(Piece { number, stream, row, units, is_there: false, waiting });
        number
    }

    /// Lets the read `id` of `units` of `row` have what is read ahead. Returns whether it must
    /// wait for that; `None` if it is not read ahead.
    pub(super) fn find(&mut self, row: u32, units: &Range<u64>, id: CommandId) -> Option<bool> {
        let has = |of: &&mut Piece| {
            of.row == row && of.units.start <= units.start && units.end <= of.units.end
        };
        let piece = self.pieces.iter_mut().find(has)?;
        if !piece.is_there {
            piece.waiting.push(id);
        }
        Some(!piece.is_there)
    }

    /// Notes that the piece `number` has left the flash. Returns the reads that wait for it.
    pub(super) fn arrived(&mut self, number: u64) -> Vec<CommandId> {
        let at = self.pieces.iter().position(|piece| piece.number == number);
        let at = at.expect("a piece stays until it is there");
        let piece = &mut self.pieces[at];
        piece.is_there = true;
        let waiting = core::mem::take(&mut piece.waiting);
        let stream = piece.stream;
        if self.streams.iter().all(|other| other.number != stream) {
            self.pieces.swap_remove(at);
        }
        waiting
    }
}
