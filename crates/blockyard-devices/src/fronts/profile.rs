//! Drives: the choice of front end and medium. A new front end or medium is a folder, and a line in
//! the lists below.

use super::coalescing::CoalescingProfile;
use super::engine::SyncEngine;
use super::front::{Front, FrontFamily, FrontPart};
use crate::counters::Counter;
use crate::medium::{Medium, MediumFamily, MediumWords};
use crate::reader::error::{Problem, ProfileError};
use crate::reader::table::Table;
use blockyard::limits::Limits;
use blockyard::prng::Prng;
use blockyard::time::Duration;

/// A drive: a front end over a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveProfile {
    /// The front end.
    pub front: FrontProfile,
    /// The medium.
    pub medium: MediumProfile,
    /// The disks of the host, each with such a front end and such a medium.
    pub disks: u16,
}

/// A front end or a medium, for the reader of a file.
struct Part<P> {
    table: &'static str,
    /// The device that is most likely the base of a file with the table, if not the usual one.
    base: Option<&'static str>,
    read: fn(&Table<'_>) -> Result<P, ProfileError>,
}

macro_rules! fronts {
    ($($(#[doc = $doc:literal])+ $name:ident($profile:ty),)+) => {
        /// The part of a drive that the host sees.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FrontProfile {
            $($(#[doc = $doc])+ $name($profile),)+
        }

        const FRONT_TABLES: &[&str] = &[$(<$profile as FrontFamily>::TABLE),+];
        const FRONTS: &[Part<FrontProfile>] = &[$(Part {
            table: <$profile as FrontFamily>::TABLE,
            base: <$profile as FrontFamily>::BASE,
            read: |top| <$profile as FrontFamily>::read(top).map(FrontProfile::$name),
        },)+];

        impl FrontProfile {
            pub(super) const fn table(&self) -> &'static str {
                match self { $(Self::$name(_) => <$profile as FrontFamily>::TABLE,)+ }
            }

            pub(super) const fn kind(&self) -> &'static str {
                match self { $(Self::$name(_) => <$profile as FrontFamily>::KIND,)+ }
            }

            pub(super) const fn disk_condition(&self) -> &'static str {
                match self { $(Self::$name(_) => <$profile as FrontFamily>::DISK_CONDITION,)+ }
            }

            pub(super) const fn part(&self) -> FrontPart {
                match self { $(Self::$name(_) => <$profile as FrontFamily>::PART,)+ }
            }

            pub(super) fn hw_queues(&self) -> u16 {
                match self { $(Self::$name(of) => FrontFamily::hw_queues(of),)+ }
            }

            pub(super) fn depth(&self) -> u16 {
                match self { $(Self::$name(of) => FrontFamily::depth(of),)+ }
            }

            /// Whether Linux takes the drive as a SCSI disk.
            pub(super) const fn is_scsi(&self) -> bool {
                match self { $(Self::$name(_) => <$profile as FrontFamily>::IS_SCSI,)+ }
            }

            /// Disks behind one host at most.
            pub(super) const fn disks_max(&self) -> u16 {
                match self { $(Self::$name(_) => <$profile as FrontFamily>::DISKS_MAX,)+ }
            }

            pub(super) fn shares_depth(&self) -> bool {
                match self { $(Self::$name(of) => FrontFamily::shares_depth(of),)+ }
            }

            /// The time for which a processor is busy with a doorbell.
            pub(super) fn doorbell(&self) -> Duration {
                match self { $(Self::$name(of) => FrontFamily::doorbell(of),)+ }
            }

            /// Whether one doorbell is for a batch of commands.
            pub(super) fn batches(&self) -> bool {
                match self { $(Self::$name(of) => FrontFamily::batches(of),)+ }
            }

            /// The interrupts that are held back.
            pub(super) fn coalescing(&self) -> Option<CoalescingProfile> {
                match self { $(Self::$name(of) => FrontFamily::coalescing(of),)+ }
            }

            /// The thread of the host that waits for the medium, if there is one.
            pub(super) fn engine(&self) -> Option<SyncEngine> {
                match self { $(Self::$name(of) => FrontFamily::engine(of),)+ }
            }

            /// Builds an idle front end.
            pub(super) fn build(&self) -> Box<dyn Front> {
                match self { $(Self::$name(of) => Box::new(FrontFamily::build(of)),)+ }
            }
        }
    };
}

macro_rules! media {
    ($($(#[doc = $doc:literal])+ $name:ident($profile:ty),)+) => {
        /// The part of a drive that keeps the data.
        #[expect(clippy::large_enum_variant, reason = "there are one or two of them at a time")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum MediumProfile {
            $($(#[doc = $doc])+ $name($profile),)+
        }

        const MEDIUM_TABLES: &[&str] = &[$(<$profile as MediumFamily>::TABLE),+];
        const MEDIA: &[Part<MediumProfile>] = &[$(Part {
            table: <$profile as MediumFamily>::TABLE,
            base: <$profile as MediumFamily>::BASE,
            read: |top| <$profile as MediumFamily>::read(top).map(MediumProfile::$name),
        },)+];

        /// The table of each medium in a profile, and its counters.
        const COUNTERS: &[(&str, &[Counter])] =
            &[$((<$profile as MediumFamily>::TABLE, <$profile as MediumFamily>::COUNTERS)),+];

        /// The words of all media.
        pub(super) const MEDIA_WORDS: &[&MediumWords] = &[$(&<$profile as MediumFamily>::WORDS),+];

        impl MediumProfile {
            pub(super) const fn table(&self) -> &'static str {
                match self { $(Self::$name(_) => <$profile as MediumFamily>::TABLE,)+ }
            }

            pub(super) fn rotates(&self) -> bool {
                match self { $(Self::$name(of) => MediumFamily::rotates(of),)+ }
            }

            pub(super) fn write_cache(&self) -> bool {
                match self { $(Self::$name(of) => MediumFamily::write_cache(of),)+ }
            }

            pub(super) fn check(&self, top: &Table<'_>, limits: &Limits) -> Result<(), ProfileError> {
                match self { $(Self::$name(of) => MediumFamily::check(of, top, limits),)+ }
            }

            /// Builds an idle medium with `capacity` sectors.
            pub(super) fn build(&self, capacity: u64, prng: Prng) -> Box<dyn Medium> {
                match self { $(Self::$name(of) => Box::new(MediumFamily::build(of, capacity, prng)),)+ }
            }
        }
    };
}

fronts! {
    /// NVMe over PCI Express: `[nvme]`.
    Nvme(super::nvme::profile::NvmeProfile),
    /// AHCI over Serial ATA: `[ahci]`.
    Ahci(super::ahci::profile::AhciProfile),
    /// virtio-blk: `[virtio]`.
    Virtio(super::virtio::profile::VirtioProfile),
    /// UFS: `[ufs]`.
    Ufs(super::ufs::profile::UfsProfile),
    /// USB storage: `[usb]`.
    Usb(super::usb::profile::UsbProfile),
}

media! {
    /// Memory that is written in place: `[crosspoint]`.
    Crosspoint(crate::crosspoint::profile::CrosspointProfile),
    /// Flash memory behind a translation layer: `[flash]`.
    Flash(crate::flash::profile::FlashProfile),
    /// A hard disk's mechanics: `[platters]`.
    Platters(crate::disk::profile::PlattersProfile),
    /// A volume in a cloud: `[volume]`.
    Volume(crate::volume::profile::VolumeProfile),
}

/// The tables of drives: first the front ends, then the media.
pub(super) const TABLES: [&str; FRONT_TABLES.len() + MEDIUM_TABLES.len()] =
    joined(FRONT_TABLES, MEDIUM_TABLES);

const fn joined<const N: usize>(
    first: &[&'static str],
    second: &[&'static str],
) -> [&'static str; N] {
    let mut all = [""; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

/// The counters of all media, each with the table of a profile that has such a medium.
pub fn counters() -> impl Iterator<Item = (&'static str, &'static Counter)> {
    COUNTERS.iter().flat_map(|&(medium, all)| all.iter().map(move |counter| (medium, counter)))
}

/// The tables of front ends, and those of media: a drive has one of each.
#[must_use]
pub const fn drive_tables() -> [&'static [&'static str]; 2] {
    [FRONT_TABLES, MEDIUM_TABLES]
}

/// The tables of media and front ends, each with the device that is most likely the base of a file
/// with it.
pub(super) fn bases() -> Vec<(&'static str, &'static str)> {
    let of_media = MEDIA.iter().map(|part| (part.table, part.base));
    let of_fronts = FRONTS.iter().map(|part| (part.table, part.base));
    of_media.chain(of_fronts).filter_map(|(table, base)| Some((table, base?))).collect()
}

/// Reads the front end and the medium of `top`, each from the file itself or else its base.
pub(super) fn drive(top: &Table<'_>) -> Result<DriveProfile, ProfileError> {
    let front = read_part(top, FRONTS, "front end")?;
    Ok(DriveProfile { front, medium: read_part(top, MEDIA, "medium")?, disks: 1 })
}

/// Reads the one of `parts` whose table `top` has, or else its base. `name` is what they are.
fn read_part<P>(top: &Table<'_>, parts: &[Part<P>], name: &str) -> Result<P, ProfileError> {
    let (last, first) = parts.split_last().expect("a drive has several such parts");
    let first: Vec<_> = first.iter().map(|part| part.table).collect();
    let words = format!("{name}: `[{}]` or `[{}]`", first.join("]`, `["), last.table);
    for file in top.files() {
        let given: Vec<_> = parts.iter().filter(|part| file.has(part.table)).collect();
        match given[..] {
            [] => {}
            [one] => return (one.read)(top),
            [_, other, ..] => {
                let words = format!("a drive has one {words}");
                return Err(file.wrong(other.table, Problem::Unfit(words)));
            }
        }
    }
    Err(top.wrong("", Problem::MissingTable(format!("a drive needs a {words}"))))
}
