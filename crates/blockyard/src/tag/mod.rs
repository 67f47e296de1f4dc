//! Tags: the numbers that bound how many requests there are, and the waiting for them.
//!
//! A [`TagMap`] gives out numbers. [`Waiters`] are the submitters that found none. A [`TagPool`] is
//! both together: the scheduler tags of a hardware queue are one. A [`TagSet`] is the driver tags of
//! one host, which several request queues may share.
//!
//! # Rules
//!
//! - **[one-owner-per-tag]** A tag has at most one owner from its take to its put.
//! - **[reserved-tags-separate]** A reserved tag is given out by `take_reserved` only, and counts neither as in use nor
//!   against any limit or share.
//! - **[take-fails-only-when-full]** A take without a limit fails only when every tag that is not reserved is in use.
//! - **[limit-uses-low-bits]** Under a limit, a take uses only the low bits of each word, the limit divided among
//!   the words: requests nobody waits for leave the rest to those somebody waits for.
//! - **[tags-shared-fairly]** Among several active queues of a set, none takes beyond its share: an equal part,
//!   rounded up, of the tags of a hardware queue, and at least [`SHARE_MIN`], so that so few are
//!   not divided at all.
//! - **[sleeper-implies-tag-in-use]** Whoever sleeps, a tag is in use. So a free is still to come, and the last one wakes
//!   everybody.
//! - **[starved-until-named]** A starved hardware queue stays registered until [`TagSet::next_starved`] names it,
//!   and is named when a tag it may take is free.
//!
//! All memory is reserved at construction. A refusal is a value, a broken rule panics.
//!
//! # What a single owner does not need
//!
//! Maps shared by processors keep, for each of them, a hint of where to look first, so that they
//! do not fight for a cache line, and gather freed bits apart. Here nobody fights, and no rule and
//! no decision of the queue depends on which number a request gets. So takes know no processor and
//! give the lowest free number, which also keeps the requests behind the numbers in cache.

mod map;
mod pool;
mod set;
mod wait;

pub use map::TagMap;
pub use pool::TagPool;
pub use set::{SHARE_MIN, TagSet, TagSetConfig};
pub use wait::{Full, Waiters};
