//! A volume in a cloud: the table `[volume]`.

use super::Volume;
use super::evidence;
use crate::charges::{Charges, Resource};
use crate::counters::Counter;
use crate::load::Parts;
use crate::medium::{MediumFamily, MediumWords};
use blockyard::prng::Prng;
use blockyard::time::Duration;

use crate::reader::error::{Problem, ProfileError};
use crate::reader::spread::{PERCENTS, Spread};
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Bytes, Count, Time};
use blockyard_text::quantity::size_words;

/// The figures of a volume in a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeProfile {
    /// Latency of a read that no limit holds back.
    pub read: Duration,
    /// Latency of a write that no limit holds back.
    pub write: Duration,
    /// The spread of both; `None`: they are always the same.
    pub spread: Option<Spread>,
    /// Bytes that count as one I/O. A larger I/O counts as several.
    pub(crate) io_unit: u64,
    /// The limit of I/Os.
    pub iops: BucketProfile,
    /// The limit of bytes.
    pub bytes: BucketProfile,
}

/// A bucket of tokens: one for each I/O, or for each byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketProfile {
    /// Tokens that fill the bucket, per second.
    pub rate: u64,
    /// Tokens that may leave it, per second; at least `rate`.
    pub(crate) burst: u64,
    /// Tokens that it holds. It is full at first.
    pub(crate) credit: u64,
}

impl MediumFamily for VolumeProfile {
    type Medium = Volume;

    const TABLE: &'static str = "volume";
    const BASE: Option<&'static str> = Some("cloud-gp3");
    const WORDS: MediumWords = evidence::WORDS;
    const COUNTERS: &'static [Counter] = evidence::COUNTERS;

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        volume(top)
    }

    fn build(&self, _capacity: u64, prng: Prng) -> Self::Medium {
        Volume::new(*self, prng)
    }
}

/// What each key of the table charges.
pub(crate) const CHARGES: Charges =
    &[("read", &[Resource::Device]), ("write", &[Resource::Device])];

/// What each key of the limit of I/Os charges.
pub(crate) const IOPS_CHARGES: Charges = &[
    ("rate", &[Resource::Parts(Parts::IosLimit)]),
    ("burst", &[Resource::Parts(Parts::IosLimit)]),
];

/// What each key of the limit of bytes charges.
pub(crate) const BYTES_CHARGES: Charges = &[
    ("rate", &[Resource::Parts(Parts::BytesLimit)]),
    ("burst", &[Resource::Parts(Parts::BytesLimit)]),
];

table_of!(VOLUME, /// Reads the table `[volume]` of `parent`.
pub(crate) fn volume("volume") -> VolumeProfile {
    read: "read" need(Time),
    write: "write" need(Time),
    spread: "spread" take(PERCENTS),
    io_unit: "io-unit" need(Bytes(512..=1 << 30)),
    iops: "iops" by(iops),
    bytes: "bytes" by(bytes),
});

table_of!(IOPS, fn iops_keys("volume.iops") -> BucketProfile {
    rate: "rate" need(Count(1..=1_000_000_000)),
    burst: "burst" need(Count(1..=1_000_000_000)),
    credit: "credit" need(Count(1..=1_000_000_000_000)),
});

table_of!(BYTES, fn bytes_keys("volume.bytes") -> BucketProfile {
    rate: "rate" need(Bytes(1..=1 << 40)),
    burst: "burst" need(Bytes(1..=1 << 40)),
    credit: "credit" need(Bytes(1..=1 << 50)),
});

fn iops(volume: &Table<'_>) -> Result<BucketProfile, ProfileError> {
    let bucket = iops_keys(volume)?;
    checked(&volume.table("volume.iops", IOPS)?, bucket, |count| count.to_string())
}

fn bytes(volume: &Table<'_>) -> Result<BucketProfile, ProfileError> {
    let bucket = bytes_keys(volume)?;
    checked(&volume.table("volume.bytes", BYTES)?, bucket, size_words)
}

/// Checks that a bucket, whose tokens `words` writes, does not fill faster than it can be emptied.
fn checked(
    table: &Table<'_>,
    bucket: BucketProfile,
    words: impl Fn(u64) -> String,
) -> Result<BucketProfile, ProfileError> {
    if bucket.rate <= bucket.burst {
        return Ok(bucket);
    }
    let rate = words(bucket.rate);
    let burst = words(bucket.burst);
    let words = format!(
        "`burst` is `{burst}`, less than `rate`, `{rate}`: raise `burst` to `{rate}` or more, or lower `rate`"
    );
    Err(table.wrong(table.given(&["burst", "rate"]), Problem::Unfit(words)))
}
