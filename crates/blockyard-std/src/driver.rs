//! Tools for a device of the embedder's own.

use crate::parts::bell;
use crate::parts::job::{Jobs, Place, job_of};
use blockyard::request::Piece;
use core::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Tools for a device of the embedder's own. See [`Options::driver`](crate::Options::driver).
#[derive(Debug)]
pub struct Tools {
    /// The data of requests.
    pub data: Data,
    /// Wakes the disk's thread.
    pub bell: Bell,
}

/// The data of a disk's requests, which a device finds by the pieces of an
/// [`Issue`](blockyard::driver::Issue::pieces). It stays in the disk's thread.
///
/// A piece may be used until its request has finished. Afterwards its number may belong to the data
/// of another request.
#[derive(Clone, Debug)]
pub struct Data(pub(crate) Jobs);

impl Data {
    /// Passes the memory of a piece of a read to `fill`, which stores the data that was read.
    /// Returns what `fill` returns.
    ///
    /// # Panics
    ///
    /// Panics if the piece is not of a read that is in flight, and if `fill` itself asks for data.
    pub fn fill<R>(&self, piece: &Piece, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        self.with(piece, |place, range| match place {
            Place::Loan(loan) => loan.fill(range, fill),
            _ => unreachable!("the data of a read is in its caller's memory"),
        })
    }

    /// Passes the data of a piece of a write to `take`. Returns what `take` returns.
    ///
    /// # Panics
    ///
    /// Panics if the piece is not of a read or write that is in flight, and if `take` itself asks
    /// for data.
    pub fn take<R>(&self, piece: &Piece, take: impl FnOnce(&[u8]) -> R) -> R {
        self.with(piece, |place, range| match place {
            Place::Loan(loan) => loan.read(range, take),
            _ => panic!("the piece has no data"),
        })
    }

    /// Calls `call` with the place of a piece's data. The jobs are borrowed meanwhile, so that
    /// nobody else gets at the memory: [borrower-alone].
    fn with<R>(&self, piece: &Piece, call: impl FnOnce(&Place, Range<usize>) -> R) -> R {
        let jobs = self.0.borrow_mut();
        let transfer = &jobs[job_of(piece.cookie)].transfer;
        let bytes = transfer.bytes_of(piece);
        call(
            &transfer.place,
            place_of(transfer.offset, bytes.start)..place_of(transfer.offset, bytes.end),
        )
    }
}

fn place_of(start: u64, offset: u64) -> usize {
    usize::try_from(offset - start).expect("offset within the memory of a caller")
}

/// A bell with which any thread wakes the disk's thread, when requests of the device have finished.
#[derive(Clone, Debug)]
pub struct Bell(pub(crate) Arc<OwnedFd>);

impl Bell {
    /// Lets the disk's thread ask the device for finished requests, and offer it more. May be
    /// called from any thread, and from the device itself.
    pub fn ring(&self) {
        bell::ring(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::job::{Job, Owner, Transfer};
    use crate::parts::loan::Ticket;
    use std::rc::Rc;

    /// Returns the data of one job over `bytes` of memory, and its piece.
    fn lent(is_read: bool) -> (Data, Piece) {
        let (_, loan) = match is_read {
            true => Ticket::to_fill(vec![3; 1024]),
            false => Ticket::to_read(vec![3; 1024]),
        };
        let transfer = Transfer { place: Place::Loan(Rc::new(loan)), ..Transfer::new(512, 1024) };
        let jobs = Jobs::default();
        let number =
            jobs.borrow_mut().insert(Job { transfer, owner: Owner::Lane, is_abandoned: false });
        (Data(jobs), Piece { cookie: number.into(), sector: 2, sectors: 1, offset_sectors: 1 })
    }

    #[test]
    fn a_piece_is_its_part_of_the_memory() {
        let (data, piece) = lent(true);
        data.fill(&piece, |bytes| bytes.fill(9));
        let whole = Piece { sector: 1, sectors: 2, offset_sectors: 0, ..piece };
        data.take(&whole, |bytes| {
            assert_eq!((&bytes[..512], &bytes[512..]), (&[3; 512][..], &[9; 512][..]))
        });
    }

    /// Checks [borrower-alone].
    #[test]
    #[should_panic(expected = "already")]
    fn memory_is_not_given_out_twice() {
        let (data, piece) = lent(true);
        data.fill(&piece, |_| data.take(&piece, |_| ()));
    }

    #[test]
    #[should_panic(expected = "a write lends its memory for reading")]
    fn the_data_of_a_write_cannot_be_changed() {
        let (data, piece) = lent(false);
        data.fill(&piece, |bytes| bytes.fill(0));
    }
}
