//! The bytes of one send: headers, each followed by its data.
//!
//! A batch copies headers. Data stays in place, in the map of a disk in memory or in a read buffer, and the batch
//! keeps it alive until it has been sent. TLS encrypts a batch piece by piece: each encrypted piece is sent while it
//! is in the caches, before the next one is made.

use blockyard_std::parts::map::{Map, Pages, Span};
use blockyard_wire::nbd::transmission::Charge;
use core::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// A range of one source.
#[derive(Debug)]
struct Part {
    of: Source,
    range: Range<usize>,
}

/// A source of bytes in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Heads,
    Pages(usize),
    Map(usize),
}

/// The bytes of one send. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Batch {
    heads: Vec<u8>,
    parts: Vec<Part>,
    /// Buffers, with the bytes that were charged for each.
    pages: Vec<(Rc<Pages>, usize)>,
    maps: Vec<Arc<Map>>,
    charges: Vec<Charge>,
    /// The first part that has not been sent, or sealed, as a whole.
    next: usize,
    /// The number of bytes of that part that have been sent or sealed.
    next_done: usize,
    /// The sealed bytes, which are sent before any others.
    sealed: Vec<u8>,
    /// The number of sealed bytes that have been sent.
    sealed_sent: usize,
}

impl Batch {
    /// Returns whether nothing is left to send or to seal.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_taken() && self.is_sent()
    }

    /// Returns whether nothing is left to seal.
    pub(crate) fn is_taken(&self) -> bool {
        self.next == self.parts.len()
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.sealed_sent == self.sealed.len()
    }

    /// Copies the next bytes to be sealed, up to `room` of them, to the end of `to`.
    pub(crate) fn take(&mut self, room: usize, to: &mut Vec<u8>) {
        let mut left = room;
        while let Some(Part { of, range }) = self.parts.get(self.next)
            && left > 0
        {
            let from = range.start + self.next_done;
            let end = range.end.min(from + left);
            match *of {
                Source::Heads => to.extend_from_slice(&self.heads[from..end]),
                Source::Pages(at) => self.pages[at].0.read(from..end, to),
                Source::Map(at) => self.maps[at].read(from..end, to),
            }
            left -= end - from;
            self.done(end - from);
        }
    }

    /// Replaces the sealed bytes by those that `seal` makes of [taken](Self::take) bytes. They are sent next.
    ///
    /// # Panics
    ///
    /// Panics if the previous sealed bytes have not been sent.
    pub(crate) fn seal(&mut self, seal: impl FnOnce(&mut Vec<u8>)) {
        assert!(self.is_sent(), "a sealed piece is sent before the next is sealed");
        self.sealed.clear();
        self.sealed_sent = 0;
        seal(&mut self.sealed);
    }

    /// Appends the bytes that `write` puts at the end of the headers.
    #[inline]
    pub(crate) fn push_head(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.heads.len();
        write(&mut self.heads);
        let end = self.heads.len();
        match self.parts.last_mut() {
            Some(Part { of: Source::Heads, range }) if range.end == from => range.end = end,
            _ => self.parts.push(Part { of: Source::Heads, range: from..end }),
        }
    }

    /// Returns the length of the headers, in bytes.
    pub(crate) fn heads_bytes(&self) -> usize {
        self.heads.len()
    }

    #[inline]
    pub(crate) fn push_map(&mut self, map: &Arc<Map>, range: Range<usize>) {
        let known = self.maps.iter().position(|kept| Arc::ptr_eq(kept, map));
        let at = known.unwrap_or_else(|| {
            self.maps.push(Arc::clone(map));
            self.maps.len() - 1
        });
        self.parts.push(Part { of: Source::Map(at), range });
    }

    pub(crate) fn push_pages(&mut self, pages: Rc<Pages>, range: Range<usize>) {
        self.pages.push((pages, range.len()));
        self.parts.push(Part { of: Source::Pages(self.pages.len() - 1), range });
    }

    /// Adds a charge, which [`Self::clear`] gives back.
    #[inline]
    pub(crate) fn push_charge(&mut self, charge: Charge) {
        self.charges.push(charge);
    }

    /// Appends the next bytes to send to `spans`, as at most `max` spans.
    pub(crate) fn spans(&mut self, max: usize, spans: &mut Vec<Span>) {
        if !self.is_sent() {
            let rest = &mut self.sealed[self.sealed_sent..];
            return spans.push(Span { start: rest.as_mut_ptr(), len: rest.len() });
        }
        let mut skip = self.next_done;
        for Part { of, range } in self.parts[self.next..].iter().take(max) {
            let range = range.start + skip..range.end;
            spans.push(match *of {
                Source::Heads => {
                    let head = &mut self.heads[range];
                    Span { start: head.as_mut_ptr(), len: head.len() }
                }
                Source::Pages(at) => self.pages[at].0.span(range),
                Source::Map(at) => self.maps[at].span(range),
            });
            skip = 0;
        }
    }

    /// Records that `bytes` more have been sent. Returns whether the batch is empty now.
    pub(crate) fn advance(&mut self, bytes: usize) -> bool {
        if self.is_sent() {
            self.done(bytes);
        } else {
            self.sealed_sent += bytes;
        }
        self.is_empty()
    }

    /// Records that `bytes` more of the parts have been sent or sealed.
    fn done(&mut self, bytes: usize) {
        let mut left = self.next_done + bytes;
        while let Some(Part { range, .. }) = self.parts.get(self.next)
            && left >= range.len()
        {
            left -= range.len();
            self.next += 1;
        }
        self.next_done = left;
    }

    /// Empties the batch, which has been sent or never will be. Gives back its charges and buffers.
    pub(crate) fn clear(
        &mut self,
        mut charge: impl FnMut(Charge),
        mut pages: impl FnMut(Rc<Pages>, usize),
    ) {
        self.charges.drain(..).for_each(&mut charge);
        self.pages.drain(..).for_each(|(buffer, bytes)| pages(buffer, bytes));
        self.maps.clear();
        self.heads.clear();
        self.parts.clear();
        self.next = 0;
        self.next_done = 0;
        self.sealed.clear();
        self.sealed_sent = 0;
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
    fn bytes_that_were_sent_are_not_sent_again() {
        let map = Arc::new(Map::new(8192).expect("mapping of 8 KiB"));
        let mut batch = Batch::default();
        batch.push_head(|out| out.extend([1; 16]));
        batch.push_head(|out| out.extend([2; 4]));
        batch.push_map(&map, 100..1100);
        batch.push_head(|out| out.extend([3; 16]));
        assert_eq!(rest(&mut batch), [20, 1000, 16], "consecutive headers are one piece");
        assert!(!batch.advance(19));
        assert_eq!(rest(&mut batch), [1, 1000, 16]);
        assert!(!batch.advance(501));
        assert_eq!(rest(&mut batch), [500, 16]);
        assert!(!batch.advance(500));
        assert!(batch.advance(16));
        assert!(batch.is_empty());
    }
    #[test]
    fn sealed_bytes_are_sent_before_more_are_sealed() {
        let map = Arc::new(Map::new(8192).expect("mapping of 8 KiB"));
        map.write(100, &[3; 1000]);
        let mut batch = Batch::default();
        batch.push_head(|out| out.extend([1; 16]));
        batch.push_map(&map, 100..1100);
        let mut clear = Vec::new();
        let mut came = Vec::new();
        let mut pieces = 0;
        while !batch.is_empty() {
            clear.clear();
            batch.take(700, &mut clear);
            batch.seal(|sealed| sealed.extend(clear.iter().map(|byte| !byte)));
            came.extend_from_slice(&clear);
            pieces += 1;
            assert_eq!(rest(&mut batch), [clear.len()], "only sealed bytes are sent");
            assert!(!batch.advance(100));
            assert_eq!(rest(&mut batch), [clear.len() - 100]);
            assert_eq!(batch.advance(clear.len() - 100), pieces == 2);
        }
        assert_eq!(pieces, 2);
        assert_eq!(came, [vec![1; 16], vec![3; 1000]].concat());
    }
}
