//! The table of commands: for each its number, its response, and where it is legal.

use super::response::ResponseKind;
use super::state::CardState;
use core::fmt;

/// The standard that a command belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// Both standards.
    Both,
    /// eMMC.
    Mmc,
    /// SD.
    Sd,
}

/// When a command is legal, depending on the command queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRule {
    /// With the queue off.
    Off,
    /// With the queue off, or without tasks.
    Drained,
    /// Always.
    Any,
    /// With the queue on.
    On,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The command.
    pub opcode: Opcode,
    /// The standard that the command belongs to.
    pub standard: Standard,
    /// The command's number, 0 to 63.
    pub index: u8,
    /// Whether CMD55 must come before it (ACMD).
    pub application: bool,
    /// The form of the card's response.
    pub response: ResponseKind,
    /// When the command is legal, depending on the command queue.
    pub queue: QueueRule,
    /// The states in which the command is legal, each with the state that follows.
    pub moves: &'static [(CardState, CardState)],
}

use CardState::{
    Data as Send, Disconnect, Identification, Idle, Inactive, Programming, Ready, Receive, Sleep,
    StandBy, Transfer,
};
use QueueRule::{Any, Drained, Off, On};
use ResponseKind::{R1, R1b, R2, R3, R4, R6, R7};
use Standard::{Both, Mmc, Sd};

/// The states in which a command is legal and the card stays.
macro_rules! stays {
    ($($state:ident)*) => { &[$(($state, $state)),*] };
}

macro_rules! opcodes {
    ($($(#[$doc:meta])* $opcode:ident = $kind:ident $index:literal $standard:ident $response:path,
        $queue:ident, $moves:expr;)*) => {
        /// The meaning of a command.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Opcode {
            $($(#[$doc])* $opcode),*
        }

        /// Every command, in the order of [`Opcode`].
        pub const TABLE: &[Row] = &[$(Row {
            opcode: Opcode::$opcode,
            standard: $standard,
            index: $index,
            application: opcodes!(@application $kind),
            response: $response,
            queue: $queue,
            moves: $moves,
        }),*];
    };
    (@application CMD) => { false };
    (@application ACMD) => { true };
}

opcodes! {
    /// Return to the state after power-up.
    GoIdle = CMD 0 Both ResponseKind::None, Any, &[
        (Idle, Idle), (Ready, Idle), (Identification, Idle), (StandBy, Idle), (Transfer, Idle),
        (Send, Idle), (Receive, Idle), (Programming, Idle), (Disconnect, Idle), (Sleep, Idle),
    ];
    /// Report whether the eMMC device is ready.
    SendOpCond = CMD 1 Mmc R3, Off, &[(Idle, Ready)];
    /// Send the CID.
    AllSendCid = CMD 2 Both R2, Off, &[(Ready, Identification)];
    /// Take an address.
    SetRelativeAddr = CMD 3 Mmc R1, Off, &[(Identification, StandBy)];
    /// Choose an address.
    SendRelativeAddr = CMD 3 Sd R6, Off, &[(Identification, StandBy), (StandBy, StandBy)];
    /// Sleep.
    Sleep = CMD 5 Mmc R1b, Off, &[(StandBy, CardState::Sleep)];
    /// Wake up.
    Awake = CMD 5 Mmc R1b, Off, &[(CardState::Sleep, StandBy)];
    /// Report an I/O card.
    IoSendOpCond = CMD 5 Sd R4, Off, stays![Idle];
    /// Change a byte of EXT_CSD.
    Switch = CMD 6 Mmc R1b, Drained, &[(Transfer, Programming)];
    /// List functions, or change them.
    SwitchFunction = CMD 6 Sd R1, Off, &[(Transfer, Send)];
    /// Set the number of lanes.
    SetBusWidth = ACMD 6 Sd R1, Off, stays![Transfer];
    /// Be selected.
    Select = CMD 7 Both R1b, Drained, &[(StandBy, Transfer), (Disconnect, Programming)];
    /// Be deselected.
    Deselect = CMD 7 Both ResponseKind::None, Drained, &[
        (StandBy, StandBy), (Transfer, StandBy), (Send, StandBy), (Programming, Disconnect),
    ];
    /// Send EXT_CSD.
    SendExtCsd = CMD 8 Mmc R1, Drained, &[(Transfer, Send)];
    /// Confirm a voltage.
    SendIfCond = CMD 8 Sd R7, Off, stays![Idle];
    /// Send the CSD.
    SendCsd = CMD 9 Both R2, Off, stays![StandBy];
    /// Send the CID.
    SendCid = CMD 10 Both R2, Off, stays![StandBy];
    /// Change signals to 1.8 V.
    VoltageSwitch = CMD 11 Sd R1, Off, stays![Ready];
    /// End the transfer.
    StopTransmission = CMD 12 Both R1b, Any, &[(Send, Transfer), (Receive, Programming)];
    /// Interrupt the present operation, by CMD12.
    InterruptByStop = CMD 12 Mmc R1b, Any, &[(Receive, Programming), (Programming, Programming)];
    /// Send the status.
    SendStatus = CMD 13 Both R1, Any,
        stays![StandBy Transfer Send Receive Programming Disconnect];
    /// Send the set of tasks that are ready.
    SendQueueStatus = CMD 13 Both R1, On, stays![Transfer Send Receive Programming];
    /// Interrupt the present operation, by CMD13.
    InterruptByStatus = CMD 13 Mmc R1b, Any, stays![Programming];
    /// Send the SD status.
    SdStatus = ACMD 13 Sd R1, Off, &[(Transfer, Send)];
    /// Never answer again.
    GoInactive = CMD 15 Both ResponseKind::None, Any, &[
        (StandBy, Inactive), (Transfer, Inactive), (Send, Inactive), (Receive, Inactive),
        (Programming, Inactive), (Disconnect, Inactive),
    ];
    /// Set the block length.
    SetBlockLen = CMD 16 Both R1, Off, stays![Transfer];
    /// Read a block.
    ReadSingle = CMD 17 Both R1, Off, &[(Transfer, Send)];
    /// Read blocks.
    ReadMultiple = CMD 18 Both R1, Off, &[(Transfer, Send)];
    /// Send the tuning block.
    SdTuningBlock = CMD 19 Sd R1, Off, &[(Transfer, Send)];
    /// Send the tuning block.
    MmcTuningBlock = CMD 21 Mmc R1, Off, &[(Transfer, Send)];
    /// Send the number of good blocks of the last write.
    SendWrittenBlocks = ACMD 22 Sd R1, Off, &[(Transfer, Send)];
    /// Set the block count of the next transfer.
    SetBlockCount = CMD 23 Both R1, Off, stays![Transfer];
    /// Erase this many blocks ahead of a write.
    SetPreEraseCount = ACMD 23 Sd R1, Off, stays![Transfer];
    /// Write a block.
    WriteSingle = CMD 24 Both R1, Off, &[(Transfer, Receive)];
    /// Write blocks.
    WriteMultiple = CMD 25 Both R1, Off, &[(Transfer, Receive)];
    /// The first block of an erase.
    SdEraseStart = CMD 32 Sd R1, Off, stays![Transfer];
    /// The last block of an erase.
    SdEraseEnd = CMD 33 Sd R1, Off, stays![Transfer];
    /// The first block or group of an erase.
    MmcEraseStart = CMD 35 Mmc R1, Off, stays![Transfer];
    /// The last block or group of an erase.
    MmcEraseEnd = CMD 36 Mmc R1, Off, stays![Transfer];
    /// Erase.
    Erase = CMD 38 Both R1b, Off, &[(Transfer, Programming)];
    /// Report whether the SD card is ready.
    SdSendOpCond = ACMD 41 Sd R3, Off, &[(Idle, Ready)];
    /// Turn the pull-up for card detection on or off.
    SetCardDetect = ACMD 42 Sd R1, Off, stays![Transfer];
    /// Forget tasks.
    ManageQueue = CMD 43 Sd R1b, On, &[(Transfer, Programming)];
    /// A task's parameters.
    QueueTaskParameters = CMD 44 Both R1, On, stays![Transfer Send Receive Programming];
    /// A task's address.
    QueueTaskAddress = CMD 45 Both R1, On, stays![Transfer Send Receive Programming];
    /// Transfer a task that reads.
    ExecuteRead = CMD 46 Both R1, On, &[(Transfer, Send)];
    /// Transfer a task that writes.
    ExecuteWrite = CMD 47 Both R1, On, &[(Transfer, Receive)];
    /// Forget tasks.
    ManageTasks = CMD 48 Mmc R1b, On, &[(Transfer, Programming)];
    /// Send a part of an extension register.
    ReadExtension = CMD 48 Sd R1, Drained, &[(Transfer, Send)];
    /// Write a part of an extension register.
    WriteExtension = CMD 49 Sd R1, Drained, &[(Transfer, Receive)];
    /// Send the SCR.
    SendScr = ACMD 51 Sd R1, Off, &[(Transfer, Send)];
    /// The next command is an application command.
    Application = CMD 55 Sd R1, Off,
        stays![Idle StandBy Transfer Send Receive Programming Disconnect];
}

impl Opcode {
    /// Returns the command's row of the table.
    #[must_use]
    pub const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Returns the command's number, 0 to 63.
    #[must_use]
    pub const fn index(self) -> u8 {
        self.row().index
    }

    /// Returns whether CMD55 must come before it.
    #[must_use]
    pub const fn is_application(self) -> bool {
        self.row().application
    }
}

/// The usual notation: `CMD18`, `ACMD41`.
impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.is_application() { "ACMD" } else { "CMD" };
        write!(f, "{prefix}{}", self.index())
    }
}

/// Each opcode is the index of its row, and its number has 6 bits.
const _: () = {
    let mut at = 0;
    while at < TABLE.len() {
        assert!(TABLE[at].opcode as usize == at, "rows in the order of the opcodes");
        assert!(TABLE[at].index < 64, "a command number of 6 bits");
        assert!(!TABLE[at].moves.is_empty(), "a command is legal in some state");
        at += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_the_table_agree() {
        for row in TABLE {
            assert_eq!(row.opcode.row().opcode, row.opcode);
            assert!(!row.moves.is_empty(), "{:?} is legal nowhere", row.opcode);
            for (at, (from, to)) in row.moves.iter().enumerate() {
                let before = &row.moves[..at];
                assert!(before.iter().all(|(other, _)| other != from), "{:?}", row.opcode);
                // The response says whether busy follows.
                assert!(*to != Programming || from == to || row.response.has_busy());
            }
            let same = TABLE.iter().filter(|other| {
                (other.index, other.application) == (row.index, row.application)
                    && other.standard == row.standard
            });
            // Within one standard, a number has several meanings only by its argument.
            assert!(same.count() == 1 || [5, 7, 12, 13].contains(&row.index), "{:?}", row.opcode);
        }
    }
}
