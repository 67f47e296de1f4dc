//! Faults of a card and its host: the tables `[card]` and `[host]` of a fault file.
//!
//! A fault rule acts on whole requests. The faults here act below requests, on single commands,
//! blocks and interrupts, so the model of the card or of the controller produces them.

use blockyard::time::Duration;

use crate::reader::error::ProfileError;
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Count, Time};

/// The faults of a card and of its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MmcFaults {
    /// The faults of the card.
    pub card: CardFaults,
    /// The faults of the host.
    pub host: HostFaults,
}

/// The odds of each fault of a card: once in this many chances (at least 1) on average; `None`:
/// never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CardFaults {
    /// The card does not receive a command, so it neither answers nor changes.
    pub command_lost_one_in: Option<u32>,
    /// A response arrives with a wrong CRC, although the card has executed the command.
    pub response_crc_one_in: Option<u32>,
    /// A read brings no data at all.
    pub no_data_one_in: Option<u32>,
    /// A block that the host reads arrives with a wrong CRC.
    pub read_crc_one_in: Option<u32>,
    /// The card refuses a block of a write with CRC status 101.
    pub write_crc_one_in: Option<u32>,
    /// The card cannot program a page: its next status reports ERROR, or that a packed write
    /// failed.
    pub program_one_in: Option<u32>,
}

/// The odds of each fault of a controller: once in this many chances (at least 1) on average;
/// `None`: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostFaults {
    /// An interrupt does not arrive.
    pub interrupt_lost_one_in: Option<u32>,
    /// The bus cannot be used from interrupt context at this moment.
    pub not_now_one_in: Option<u32>,
    /// The sampling point has drifted after a transaction: a bus in a tuned mode needs tuning.
    pub drift_one_in: Option<u32>,
    /// Tuning finds no sampling point that works.
    pub tuning_fails_one_in: Option<u32>,
    /// The instant, in virtual time, at which somebody pulls the card out. The host notices when it
    /// next uses the bus.
    pub removed_at: Option<Duration>,
}

/// Reads the tables `[card]` and `[host]` of a fault file.
pub(crate) fn mmc_faults(top: &Table<'_>) -> Result<MmcFaults, ProfileError> {
    Ok(MmcFaults { card: card(top)?, host: host(top)? })
}

table_of!(CARD, fn card("card") -> CardFaults {
    command_lost_one_in: "command-lost-one-in" take(ONE_IN),
    response_crc_one_in: "response-crc-one-in" take(ONE_IN),
    no_data_one_in: "no-data-one-in" take(ONE_IN),
    read_crc_one_in: "read-crc-one-in" take(ONE_IN),
    write_crc_one_in: "write-crc-one-in" take(ONE_IN),
    program_one_in: "program-one-in" take(ONE_IN),
});

table_of!(HOST, fn host("host") -> HostFaults {
    interrupt_lost_one_in: "interrupt-lost-one-in" take(ONE_IN),
    not_now_one_in: "not-now-one-in" take(ONE_IN),
    drift_one_in: "drift-one-in" take(ONE_IN),
    tuning_fails_one_in: "tuning-fails-one-in" take(ONE_IN),
    removed_at: "removed-at" take(Time),
});

const ONE_IN: Count<u32> = Count(1..=u32::MAX);
