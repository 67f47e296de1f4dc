//! Conversions of indexes to the numbers that requests, tags and hardware queues go by.

use crate::unit::{DriverTag, HctxId, RequestId};

pub(super) fn hctx_id(at: usize) -> HctxId {
    HctxId(u16::try_from(at).expect("a tag set has at most 65535 hardware queues"))
}

pub(super) fn driver_tag(tag: u32) -> DriverTag {
    DriverTag(u16::try_from(tag).expect("driver tag of at most 16 bits"))
}

pub(super) fn request_id(at: usize) -> RequestId {
    RequestId(index32(at))
}

pub(super) fn index32(at: usize) -> u32 {
    u32::try_from(at).expect("a count within a queue of at most 32 bits")
}
