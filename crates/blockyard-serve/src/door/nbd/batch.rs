//! The bytes of one send: headers, each followed by its data.
//!
//! A batch copies headers. Data stays where it lies, in the map of a disk in memory or in a read buffer,
//! and the batch keeps it alive until it was sent. TLS encrypts a batch piece by piece: each encrypted
//! piece is sent while it is in the caches, before the next one is made.

use crate::map::{Map, Pages, Span};
use blockyard_wire::nbd::transmission::Charge;
use core::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// A range of one source.
#[derive(Debug)]
struct Part {
    /// The source.
    of: Source,
    range: Range<usize>,
}

/// A source of bytes in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Heads,
    /// One of the buffers.
    Pages(usize),
    /// One of the maps.
    Map(usize),
}

/// What goes to one connection at once. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Batch {
    heads: Vec<u8>,
    parts: Vec<Part>,
    pages: Vec<Rc<Pages>>,
    maps: Vec<Arc<Map>>,
    charges: Vec<Charge>,
    /// The first part that has not been sent, or sealed, whole.
    next: usize,
    /// How much of it has been, in bytes.
    next_done: usize,
    /// What was sealed, and is sent before anything else is.
    sealed: Vec<u8>,
    /// How much of that has been sent, in bytes.
    sealed_sent: usize,
}

impl Batch {
    /// Whether there is nothing to send, or to seal.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_taken() && self.is_sent()
    }

    /// Whether there is nothing to seal any more.
    pub(crate) fn is_taken(&self) -> bool {
        self.next == self.parts.len()
    }

    /// Whether there is nothing that was sealed and not sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.sealed_sent == self.sealed.len()
    }

    /// Whether some of it is in buffers.
    pub(crate) fn has_pages(&self) -> bool {
        !self.pages.is_empty()
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
                Source::Pages(at) => self.pages[at].read(from..end, to),
                Source::Map(at) => self.maps[at].read(from..end, to),
            }
            left -= end - from;
            self.done(end - from);
        }
    }

    /// What is sent next is what `seal` puts there, of what it [took](Self::take).
    ///
    /// # Panics
    ///
    /// If the one before was not sent.
    pub(crate) fn seal(&mut self, seal: impl FnOnce(&mut Vec<u8>)) {
        assert!(self.is_sent(), "one piece after the other");
        self.sealed.clear();
        self.sealed_sent = 0;
        seal(&mut self.sealed);
    }

    /// Appends bytes that `write` puts at the end of the headers.
    #[inline]
    pub(crate) fn head(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.heads.len();
        write(&mut self.heads);
        let end = self.heads.len();
        match self.parts.last_mut() {
            Some(Part { of: Source::Heads, range }) if range.end == from => range.end = end,
            _ => self.parts.push(Part { of: Source::Heads, range: from..end }),
        }
    }

    /// Appends `range` of the memory of a disk.
    #[inline]
    pub(crate) fn map(&mut self, map: &Arc<Map>, range: Range<usize>) {
        let known = self.maps.iter().position(|kept| Arc::ptr_eq(kept, map));
        let at = known.unwrap_or_else(|| {
            self.maps.push(Arc::clone(map));
            self.maps.len() - 1
        });
        self.parts.push(Part { of: Source::Map(at), range });
    }

    /// Appends `range` of a buffer.
    pub(crate) fn pages(&mut self, pages: Rc<Pages>, range: Range<usize>) {
        self.parts.push(Part { of: Source::Pages(self.pages.len()), range });
        self.pages.push(pages);
    }

    /// What is given back once it has been sent.
    #[inline]
    pub(crate) fn charge(&mut self, charge: Charge) {
        self.charges.push(charge);
    }

    /// Appends what is sent next to `spans`, up to `max` of them.
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
                Source::Pages(at) => self.pages[at].span(range),
                Source::Map(at) => self.maps[at].span(range),
            });
            skip = 0;
        }
    }

    /// `bytes` more of it have been sent; whether that was all.
    pub(crate) fn advance(&mut self, bytes: usize) -> bool {
        if self.is_sent() {
            self.done(bytes);
        } else {
            self.sealed_sent += bytes;
        }
        self.is_empty()
    }

    /// `bytes` more of the parts have been sent, or sealed.
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
        (self.next, self.next_done) = (0, 0);
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
    #[test]
    fn sealed_bytes_are_sent_before_more_are_sealed() {
        let map = Arc::new(Map::new(8192).expect("mapping of 8 KiB"));
        map.write(100, &[3; 1000]);
        let mut batch = Batch::default();
        batch.head(|out| out.extend([1; 16]));
        batch.map(&map, 100..1100);
        let (mut clear, mut came) = (Vec::new(), Vec::new());
        let mut pieces = 0;
        while !batch.is_empty() {
            clear.clear();
            batch.take(700, &mut clear);
            batch.seal(|sealed| sealed.extend(clear.iter().map(|byte| !byte)));
            came.extend_from_slice(&clear);
            pieces += 1;
            assert_eq!(rest(&mut batch), [clear.len()], "only what was sealed is sent");
            assert!(!batch.advance(100));
            assert_eq!(rest(&mut batch), [clear.len() - 100]);
            assert_eq!(batch.advance(clear.len() - 100), pieces == 2);
        }
        assert_eq!(pieces, 2);
        assert_eq!(came, [vec![1; 16], vec![3; 1000]].concat());
    }
}
