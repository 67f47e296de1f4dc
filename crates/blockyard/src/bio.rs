//! Bios: what a submitter hands in.
//!
//! A [`Bio`] names one operation on one sector range. Its payload is opaque: the queue carries the
//! caller's `cookie` and the number of memory segments, never bytes.
//!
//! # The cookie
//!
//! The cookie is a handle to a payload of the caller's own type: pages, a descriptor chain, a
//! buffer by its tag. The caller keeps payloads in a slab; the cookie is the number of a slot. It
//! comes back in [`Ended`](crate::request::Ended), and the driver sees it in each
//! [`Piece`](crate::request::Piece), with the offset of the piece in the payload.
//!
//! ```
//! use blockyard::bio::Bio;
//!
//! /// What travels with a request: here, a page for each 8 sectors.
//! struct Pages(Vec<Box<[u8; 4096]>>);
//!
//! /// Payloads by number.
//! #[derive(Default)]
//! struct Payloads {
//!     slots: Vec<Option<Pages>>,
//!     free: Vec<usize>,
//! }
//!
//! impl Payloads {
//!     /// Keeps `pages` until the bio with the returned cookie has ended.
//!     fn keep(&mut self, pages: Pages) -> u64 {
//!         let at = self.free.pop().unwrap_or_else(|| {
//!             self.slots.push(None);
//!             self.slots.len() - 1
//!         });
//!         self.slots[at] = Some(pages);
//!         at as u64
//!     }
//!
//!     /// For the driver: the page at `offset_sectors` of a piece.
//!     fn page(&mut self, cookie: u64, offset_sectors: u32) -> &mut [u8; 4096] {
//!         let pages = self.slots[cookie as usize].as_mut().expect("a bio in flight has pages");
//!         &mut pages.0[offset_sectors as usize / 8]
//!     }
//!
//!     /// Gives the pages of a bio that has ended back to their owner.
//!     fn take(&mut self, cookie: u64) -> Pages {
//!         self.free.push(cookie as usize);
//!         self.slots[cookie as usize].take().expect("a bio ends once")
//!     }
//! }
//!
//! let mut payloads = Payloads::default();
//! let cookie = payloads.keep(Pages(vec![Box::new([7; 4096]), Box::new([8; 4096])]));
//! let bio = Bio::read(0, 16, cookie);
//! assert_eq!(payloads.page(bio.cookie, 8)[0], 8);
//! assert_eq!(payloads.take(bio.cookie).0.len(), 2);
//! ```
//!
//! Why the payload itself does not travel as a type parameter of the queue: a bio that is split is
//! in several requests at the same time, and each piece of each of them names its payload. So the
//! parameter would have to be `Copy`, which is a handle again. It would stand in `Bio`, `Piece`,
//! `Issue`, `Driver`, every layer and every device, some hundred and fifty items in this crate
//! alone, and each size would have queue code of its own. A cookie of 64 bits holds a number, or a
//! pointer for code that may use one.

use core::ops::{BitOr, BitOrAssign};

/// The operation of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Read the range.
    Read,
    /// Write the range.
    Write,
    /// Make durable every write that ended before this bio was submitted. Has no range.
    Flush,
    /// The range's content is no longer needed.
    Discard,
    /// Write zeroes over the range.
    WriteZeroes,
    /// Discard the range so that it cannot be recovered.
    SecureErase,
    /// A command of the driver's own that transfers data to the host, if any. Driver and submitter
    /// agree on the meaning of sector and sectors. It bypasses splitting, merging and the elevator.
    DriverIn,
    /// Like [`Self::DriverIn`], for a command that transfers data to the device.
    DriverOut,
}

impl Op {
    /// Whether this is a read. Elevators have two directions: every other op counts as a write.
    #[must_use]
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Read)
    }

    /// Whether it is a command of the driver's own (passthrough).
    #[must_use]
    pub const fn is_passthrough(self) -> bool {
        matches!(self, Self::DriverIn | Self::DriverOut)
    }
}

/// Properties of a bio or request, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u16);

impl Flags {
    /// Nothing set.
    pub const NONE: Self = Self(0);
    /// Somebody waits for it. Reads count as if it were set.
    pub const SYNC: Self = Self(1 << 0);
    /// File-system metadata.
    pub const META: Self = Self(1 << 1);
    /// Empty the device's volatile cache first. Means nothing on a read or a passthrough command.
    pub const PREFLUSH: Self = Self(1 << 2);
    /// Durable when it ends. Means nothing where [`Self::PREFLUSH`] does not.
    pub const FUA: Self = Self(1 << 3);
    /// Refuse rather than wait for a tag, for a freeze to end, or for the parts of a split.
    pub const NOWAIT: Self = Self(1 << 4);
    /// Never merge with another bio.
    pub const NO_MERGE: Self = Self(1 << 5);
    /// Its first segment does not begin on the device's virtual boundary, so nothing may be put
    /// before it where [`Limits::virt_boundary`](crate::limits::Limits::virt_boundary) holds.
    pub const GAP_HEAD: Self = Self(1 << 6);
    /// Its last segment does not end on the device's virtual boundary; like [`Self::GAP_HEAD`], for
    /// its other end.
    pub const GAP_TAIL: Self = Self(1 << 7);
    /// The submitter polls for its end: it uses the polled hardware queues, where there are any.
    pub const POLLED: Self = Self(1 << 8);
    /// It may use only the tags that the host keeps in reserve: for bios that must get through when
    /// all others are stuck, such as an abort.
    pub const RESERVED: Self = Self(1 << 9);
    /// A page cache writes dirty pages: [`Policies::wbt`](crate::policy::Policies::wbt) bounds such
    /// writes. Means nothing on other operations. Linux marks the opposite: direct writes have
    /// `REQ_IDLE`.
    pub const WRITEBACK: Self = Self(1 << 10);
    /// Writeback that no writer waits for (`REQ_BACKGROUND`).
    pub const BACKGROUND: Self = Self(1 << 11);

    /// Whether every flag of `other` is set here.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any flag of `other` is set here.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a submitter waits for an `op` with these flags: reads, and what has
    /// [`Self::SYNC`], [`Self::PREFLUSH`] or [`Self::FUA`] (Linux's `op_is_sync`).
    #[must_use]
    pub const fn is_sync(self, op: Op) -> bool {
        op.is_read() || self.intersects(Self(Self::SYNC.0 | Self::PREFLUSH.0 | Self::FUA.0))
    }

    /// Returns the flags without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the flags, with `edge` as in `other`.
    pub(crate) fn with_edge_of(self, other: Self, edge: Self) -> Self {
        if other.contains(edge) { self | edge } else { self.without(edge) }
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// Priority class of a bio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrioClass {
    /// Real time: before all other classes.
    RealTime,
    /// Best effort.
    BestEffort,
    /// The submitter has asked for no priority. Elevators treat the bio as best effort; BFQ, which
    /// goes by levels, takes it for level 4, as Linux does for a process of nice 0.
    #[default]
    None,
    /// Idle: only when no other class wants the device.
    Idle,
}

/// Priority of a bio: class, and level 0 (first) to 7 within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoPrio {
    /// The class.
    pub class: PrioClass,
    /// The level within the class, 0 to 7.
    pub level: u8,
}

impl IoPrio {
    /// The priority of a bio whose submitter has asked for none.
    pub const NONE: Self = Self { class: PrioClass::None, level: 0 };
}

/// The process that submits a bio, and the group of processes that it belongs to, in the caller's
/// own numbers.
///
/// An elevator may use them to share the device among processes or groups; nothing else in the core
/// reads them. Callers that do not tell submitters apart leave both numbers at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Submitter {
    /// The process: a thread, a client, a virtual machine.
    pub process: u32,
    /// The group of the process: a control group, a tenant.
    pub group: u32,
}

impl Submitter {
    /// Process 0 of group 0; the submitter of a bio without one.
    pub const NONE: Self = Self { process: 0, group: 0 };
}

/// One operation on one range of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// The caller's own value; comes back when the bio ends.
    pub cookie: u64,
    /// First sector (512 bytes each).
    pub sector: u64,
    /// Number of sectors; 0 only for [`Op::Flush`], always, and for passthrough.
    pub sectors: u32,
    /// The operation.
    pub op: Op,
    /// Properties.
    pub flags: Flags,
    /// Priority.
    pub prio: IoPrio,
    /// Write hint: data of one lifetime; 0 is none. Bios of different hints do not merge.
    pub write_hint: u8,
    /// Number of memory segments of the payload; counted against the device's limit when merging
    /// and splitting.
    pub segments: u16,
    /// The process and group that submit it.
    pub submitter: Submitter,
}

impl Bio {
    /// A bio with one segment, no flags, default priority, no hint and [`Submitter::NONE`].
    #[must_use]
    pub const fn new(op: Op, sector: u64, sectors: u32, cookie: u64) -> Self {
        Self {
            cookie,
            sector,
            sectors,
            op,
            flags: Flags::NONE,
            prio: IoPrio::NONE,
            write_hint: 0,
            segments: 1,
            submitter: Submitter::NONE,
        }
    }

    /// A read; see [`Self::new`].
    #[must_use]
    pub const fn read(sector: u64, sectors: u32, cookie: u64) -> Self {
        Self::new(Op::Read, sector, sectors, cookie)
    }

    /// A write; see [`Self::new`].
    #[must_use]
    pub const fn write(sector: u64, sectors: u32, cookie: u64) -> Self {
        Self::new(Op::Write, sector, sectors, cookie)
    }

    /// The same bio with `flags` added.
    #[must_use]
    pub const fn with_flags(mut self, flags: Flags) -> Self {
        self.flags = Flags(self.flags.0 | flags.0);
        self
    }

    /// The same bio with priority `prio`.
    #[must_use]
    pub const fn with_prio(mut self, prio: IoPrio) -> Self {
        self.prio = prio;
        self
    }

    /// The same bio, submitted by `submitter`.
    #[must_use]
    pub const fn with_submitter(mut self, submitter: Submitter) -> Self {
        self.submitter = submitter;
        self
    }

    /// The sector behind the last one.
    #[must_use]
    pub const fn end_sector(&self) -> u64 {
        self.sector + self.sectors as u64
    }

    /// Whether a submitter waits for it ([`Flags::is_sync`]).
    #[must_use]
    pub const fn is_sync(&self) -> bool {
        self.flags.is_sync(self.op)
    }
}
