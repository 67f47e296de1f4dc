//! Identifiers and units: a type for each, so that one cannot stand for another.

/// Bytes in a sector. A sector is 512 bytes always; what a device addresses is a *logical block*
/// of one or more sectors.
pub const SECTOR_BYTES: u32 = 512;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// The number as an index.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A processor that submits bios; software queues and queue maps are indexed by it.
    CpuId(u16)
);
id!(
    /// A hardware queue (hctx) of a request queue.
    HctxId(u16)
);
id!(
    /// A request queue among those that share a [`Host`](crate::host::Host).
    QueueId(u16)
);
id!(
    /// A handle to a request in its queue's pool. With an elevator it is also the scheduler tag,
    /// without one the driver tag, each counted over all hardware queues.
    RequestId(u32)
);
id!(
    /// The number under which a driver knows a request: unique within its hardware queue while the
    /// driver owns the request.
    DriverTag(u16)
);
id!(
    /// A device's permit for one request, taken before the request leaves the elevator. What the
    /// number means is the driver's own matter.
    Budget(u32)
);
