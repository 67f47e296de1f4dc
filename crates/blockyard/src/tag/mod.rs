//! Tags: the numbers that bound how many requests there are, and the wait for them.
//!
//! A [`TagMap`] gives out numbers. [`Waiters`] are the submitters that found none. A [`TagPool`] is
//! both together: the scheduler tags of a hardware queue are one. A [`TagSet`] is the driver tags
//! of one host, which several request queues may share.
//!
//! # Rules
//!
//! - **[one-owner-per-tag]** A tag has at most one owner from its take to its put.
//! - **[reserved-tags-separate]** Only `take_reserved` gives out a reserved tag, which counts
//!   neither as in use nor against any limit or share.
//! - **[take-fails-only-when-full]** A take without a limit fails only when every tag that is not
//!   reserved is in use.
//! - **[tags-shared-fairly]** Among several active queues of a set, none takes more than its share:
//!   an equal part, rounded up, of the tags of a hardware queue, and at least [`SHARE_MIN`], so
//!   that very few tags are not divided at all. A host may limit each queue to fewer.
//! - **[sleeper-implies-tag-in-use]** While a submitter sleeps, a tag is in use. So a put is still
//!   to come, and the last one wakes every sleeper.
//!
//! Under a limit, a take uses only the low bits of each word, with the limit divided among the
//! words: asynchronous requests leave the rest to synchronous ones. A starved hardware queue stays
//! registered until [`TagSet::next_starved`] names it, and is named when a tag that it may take is
//! free.
//!
//! All memory is reserved at construction. A refusal is a value; a broken rule panics.
//!
//! # What a single owner does not need
//!
//! Maps that processors share keep a hint for each processor where to look first, so that
//! processors do not fight for a cache line, and collect freed bits separately. Here there is one
//! owner, and no rule or decision of the queue depends on which number a request gets. So takes
//! know no processor and give the lowest free number, which also keeps the requests behind the
//! numbers in cache.

mod map;
mod pool;
mod set;
mod wait;

pub use map::TagMap;
pub use pool::TagPool;
pub use set::{SHARE_MIN, TagSet, TagSetConfig};
pub use wait::{Full, Waiters};
