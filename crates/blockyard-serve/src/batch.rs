//! What goes to one connection at once: headers, and between them the data they announce.
//!
//! Headers are copied; data is named where it lies, in the map of a disk in memory or in a buffer
//! that was read into, and kept alive by the batch until it was sent. Where everything is sealed
//! before it is sent, data is copied too, so that it lies in one piece.

use crate::map::{Map, Pages, Span};
use blockyard_wire::nbd::transmission::Charge;
use core::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// A piece of what is sent.
#[derive(Debug)]
enum Part {
    /// Of the headers.
    Head { from: usize, to: usize },
    /// Of memory that the batch keeps.
    Data(Span),
}

/// What goes to one connection at once. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Batch {
    heads: Vec<u8>,
    parts: Vec<Part>,
    pages: Vec<Rc<Pages>>,
    maps: Vec<Arc<Map>>,
    charges: Vec<Charge>,
    /// The first part that has not been sent whole.
    next: usize,
    /// How much of it has been sent, in bytes.
    next_sent: usize,
    /// Data is copied behind the headers.
    copies: bool,
}

impl Batch {
    /// An empty batch that copies data, so that it can be sealed.
    pub(crate) fn copying() -> Self {
        Self { copies: true, ..Self::default() }
    }

    /// Lets `seal` make of all that is in it what is sent instead.
    ///
    /// # Panics
    ///
    /// If it is not [`Self::copying`].
    pub(crate) fn seal(&mut self, seal: impl FnOnce(&mut Vec<u8>)) {
        assert!(self.copies && self.next_sent == 0, "all of it is one piece, and not sent");
        seal(&mut self.heads);
        self.parts.clear();
        self.parts.push(Part::Head { from: 0, to: self.heads.len() });
    }

    /// Whether there is nothing to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.parts.len()
    }

    /// Appends bytes that `write` puts at the end of the headers.
    #[inline]
    pub(crate) fn head(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.heads.len();
        write(&mut self.heads);
        let end = self.heads.len();
        match self.parts.last_mut() {
            Some(Part::Head { to, .. }) if *to == from => *to = end,
            _ => self.parts.push(Part::Head { from, to: end }),
        }
    }

    /// Appends `range` of the memory of a disk.
    #[inline]
    pub(crate) fn map(&mut self, map: &Arc<Map>, range: Range<usize>) {
        if self.copies {
            return self.head(|heads| map.read(range, heads));
        }
        self.parts.push(Part::Data(map.span(range)));
        if !self.maps.iter().any(|kept| Arc::ptr_eq(kept, map)) {
            self.maps.push(Arc::clone(map));
        }
    }

    /// Appends `range` of a buffer.
    pub(crate) fn pages(&mut self, pages: Rc<Pages>, range: Range<usize>) {
        if self.copies {
            self.head(|heads| pages.read(range, heads));
        } else {
            self.parts.push(Part::Data(pages.span(range)));
        }
        self.pages.push(pages);
    }

    /// What is given back once it has been sent.
    #[inline]
    pub(crate) fn charge(&mut self, charge: Charge) {
        self.charges.push(charge);
    }

    /// Appends what has not been sent to `spans`, up to `max` of them.
    pub(crate) fn spans(&mut self, max: usize, spans: &mut Vec<Span>) {
        let mut skip = self.next_sent;
        for part in self.parts[self.next..].iter().take(max) {
            let Span { start, len } = match *part {
                Part::Head { from, to } => {
                    let head = &mut self.heads[from..to];
                    Span { start: head.as_mut_ptr(), len: head.len() }
                }
                Part::Data(span) => span,
            };
            spans.push(Span { start: start.wrapping_add(skip), len: len - skip });
            skip = 0;
        }
    }

    /// `bytes` more of it have been sent; whether that was all.
    pub(crate) fn advance(&mut self, bytes: usize) -> bool {
        let mut left = self.next_sent + bytes;
        while let Some(part) = self.parts.get(self.next) {
            let len = match part {
                Part::Head { from, to } => to - from,
                Part::Data(span) => span.len,
            };
            if left < len {
                break;
            }
            left -= len;
            self.next += 1;
        }
        self.next_sent = left;
        self.is_empty()
    }

    /// All of it has been sent, or will never be: gives back what it kept, and is empty.
    pub(crate) fn clear(
        &mut self,
        mut charge: impl FnMut(Charge),
        mut pages: impl FnMut(Rc<Pages>),
    ) {
        self.charges.drain(..).for_each(&mut charge);
        self.pages.drain(..).for_each(&mut pages);
        self.maps.clear();
        self.heads.clear();
        self.parts.clear();
        (self.next, self.next_sent) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(batch: &mut Batch) -> Vec<usize> {
        let mut spans = Vec::new();
        batch.spans(16, &mut spans);
        spans.iter().map(|span| span.len).collect()
    }

    #[test]
    fn what_was_sent_in_pieces_is_not_sent_again() {
        let map = Arc::new(Map::new(8192).expect("there is memory"));
        let mut batch = Batch::default();
        batch.head(|out| out.extend([1; 16]));
        batch.head(|out| out.extend([2; 4]));
        batch.map(&map, 100..1100);
        batch.head(|out| out.extend([3; 16]));
        assert_eq!(rest(&mut batch), [20, 1000, 16], "headers in a row are one piece");
        assert!(!batch.advance(19));
        assert_eq!(rest(&mut batch), [1, 1000, 16]);
        assert!(!batch.advance(501));
        assert_eq!(rest(&mut batch), [500, 16]);
        assert!(!batch.advance(500));
        assert!(batch.advance(16));
        assert!(batch.is_empty());
    }
}
