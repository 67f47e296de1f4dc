//! The limits of packed commands.

use crate::command::packed::MAX_ENTRIES;
use crate::host::{HostCapabilities, Transfer};
use crate::policy::{Bounce, HostPolicy, Packed, Pipeline};
use crate::target::Target;

/// The greatest numbers of requests in one packed command: writes, and reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PackLimit {
    pub(super) writes: u8,
    pub(super) reads: u8,
}

impl PackLimit {
    /// Returns what `policy` wants of `target` behind a host with `capabilities`; `None` if the
    /// card or the host cannot.
    ///
    /// A controller must take the header and two requests in one transfer, and must not have one
    /// bounce buffer for all requests. A command queue takes no packed commands.
    pub(super) fn of(
        policy: &HostPolicy,
        target: &Target,
        capabilities: &HostCapabilities,
    ) -> Option<Self> {
        let [writes, reads] = match policy.packed {
            Packed::Off => return Some(Self::default()),
            Packed::Write => [target.packed_writes, 0],
            Packed::ReadWrite => [target.packed_writes, target.packed_reads],
        };
        if policy.pipeline == Pipeline::Cqe {
            return None;
        }
        debug_assert_ne!(policy.packed, Packed::Off, "decided above");
        let card = writes >= 2 && (policy.packed == Packed::Write || reads >= 2);
        let segments = capabilities.transfer == Transfer::Pio || capabilities.max_segments >= 3;
        let host = segments && policy.bounce != Bounce::Sync;
        let [writes, reads] = [writes, reads].map(|most| most.min(MAX_ENTRIES));
        (card && host).then_some(Self { writes, reads })
    }

    /// Returns the larger of the two limits.
    pub(super) fn largest(self) -> u8 {
        self.writes.max(self.reads)
    }
}
