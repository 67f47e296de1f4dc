//! [`DataEvent`]: a report of a device that keeps its own data.
//!
//! A model of a device moves no bytes. A model that knows when data reaches its medium reports each
//! step as an event; the [`Medium`](super::medium::Medium) over it keeps the stamps of the data.

use blockyard::driver::Device;
use blockyard::time::Instant;
use blockyard::unit::DriverTag;
use core::ops::Range;

/// An event in the life of data. `P` names the data: its owner, and its first sector within that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataEvent<P> {
    /// The device received data for these sectors, and reads find it from now on.
    Received {
        /// The data.
        place: P,
        /// The sectors on the disk.
        sectors: Range<u64>,
        /// The page that holds the data. Pages are numbered from 1 in order of arrival.
        page: u64,
    },
    /// The device sent the content of these sectors to the host.
    Sent {
        /// The part of the request's data that the content fills.
        place: P,
        /// The sectors on the disk.
        sectors: Range<u64>,
    },
    /// The current erase dropped these sectors.
    Erased {
        /// The sectors.
        sectors: Range<u64>,
        /// Whether no loss of power can bring back the old content.
        certain: bool,
    },
    /// A page is on the medium and survives any loss of power.
    Certain {
        /// Its number.
        page: u64,
        /// Its sectors.
        sectors: Range<u64>,
    },
    /// All pages up to this one are on the medium and survive any loss of power.
    Flushed {
        /// The number of the last page.
        page: u64,
    },
    /// The power failed, and any data that was not durable may be lost.
    Lost,
}

impl<P> DataEvent<P> {
    /// Converts the name of the data by `to`; `None` if `to` knows no name for it.
    pub fn of<Q>(self, to: impl FnOnce(P) -> Option<Q>) -> Option<DataEvent<Q>> {
        Some(match self {
            Self::Received { place, sectors, page } => {
                DataEvent::Received { place: to(place)?, sectors, page }
            }
            Self::Sent { place, sectors } => DataEvent::Sent { place: to(place)?, sectors },
            Self::Erased { sectors, certain } => DataEvent::Erased { sectors, certain },
            Self::Certain { page, sectors } => DataEvent::Certain { page, sectors },
            Self::Flushed { page } => DataEvent::Flushed { page },
            Self::Lost => DataEvent::Lost,
        })
    }
}

/// A part of a request's data: the sectors from `from` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The tag of the request.
    pub tag: DriverTag,
    /// Sectors of the request before the part.
    pub from: u32,
}

/// A device that may keep its own data.
pub trait ReportsData: Device {
    /// Whether the device keeps its own data. Constant while the device has requests.
    fn keeps_data(&self) -> bool {
        false
    }

    /// Advances the device to `now`, so that it reports the data events that need only time.
    fn advance_data(&mut self, now: Instant) {
        let _ = now;
    }

    /// Returns the next event that was not returned yet, in order.
    fn next_data_event(&mut self) -> Option<DataEvent<Place>> {
        None
    }
}
