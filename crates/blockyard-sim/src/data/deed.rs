//! [`Deed`]: what a device that decides itself what it holds did with data.
//!
//! A model of a device moves no bytes. One that knows when which of them are on its medium says so, deed
//! by deed; a [`Medium`](super::medium::Medium) over it keeps the marks that lie where.

use blockyard::driver::Device;
use blockyard::time::Instant;
use blockyard::unit::DriverTag;
use core::ops::Range;

/// Something happened to data. `P` says whose it is, and from where in it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed<P> {
    /// These sectors are received: reads find them.
    Received {
        /// The data.
        place: P,
        /// Where it lies.
        sectors: Range<u64>,
        /// The page that it is in, counted in the order in which they came, from 1.
        page: u64,
    },
    /// What these sectors hold went to the host.
    Sent {
        /// The data that it is for.
        place: P,
        /// Where it lies.
        sectors: Range<u64>,
    },
    /// These sectors were given up, by the one operation under way that does such.
    Erased {
        /// They.
        sectors: Range<u64>,
        /// No loss of power brings back what was there.
        certain: bool,
    },
    /// A page is on the medium, whatever happens.
    Certain {
        /// Its number.
        page: u64,
        /// Its sectors.
        sectors: Range<u64>,
    },
    /// All pages up to this one are on the medium, whatever happens.
    Flushed {
        /// Its number.
        page: u64,
    },
    /// Power was gone: of all that was not certain anything may be left.
    Lost,
}

impl<P> Deed<P> {
    /// The same, with its data named by `to`; `None`: nobody is to know whose it is.
    pub fn of<Q>(self, to: impl FnOnce(P) -> Option<Q>) -> Option<Deed<Q>> {
        Some(match self {
            Self::Received { place, sectors, page } => {
                Deed::Received { place: to(place)?, sectors, page }
            }
            Self::Sent { place, sectors } => Deed::Sent { place: to(place)?, sectors },
            Self::Erased { sectors, certain } => Deed::Erased { sectors, certain },
            Self::Certain { page, sectors } => Deed::Certain { page, sectors },
            Self::Flushed { page } => Deed::Flushed { page },
            Self::Lost => Deed::Lost,
        })
    }
}

/// A part of a request's data: that with the tag, from this sector of it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The request.
    pub tag: DriverTag,
    /// Sectors of the request that come before.
    pub from: u32,
}

/// A device, which may decide itself what it holds.
pub trait Keeper: Device {
    /// Whether it does. Does not change while it has requests.
    fn keeps_data(&self) -> bool {
        false
    }

    /// It is `now`: deeds that time alone has done are done.
    fn keep_up(&mut self, now: Instant) {
        let _ = now;
    }

    /// The next deed that was not told, in their order.
    fn next_deed(&mut self) -> Option<Deed<Place>> {
        None
    }
}
