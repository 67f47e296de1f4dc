//! The table of commands: for each its number, its response, and where it is legal.

use super::response::ResponseKind;
use super::state::CardState;
use core::fmt;

/// Whose command it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// Of both.
    Both,
    /// Of eMMC.
    Mmc,
    /// Of SD.
    Sd,
}

/// When a command is legal with regard to eMMC's command queue.
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

/// What the table says of a command.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The command.
    pub opcode: Opcode,
    /// Whose it is.
    pub standard: Standard,
    /// Its number, 0 to 63.
    pub index: u8,
    /// Whether CMD55 must come before it (ACMD).
    pub application: bool,
    /// What the card answers.
    pub response: ResponseKind,
    /// With regard to the command queue.
    pub queue: QueueRule,
    /// States where it is legal, and the state that follows.
    pub moves: &'static [(CardState, CardState)],
}

use CardState::{
    Data as Send, Disconnect, Identification, Idle, Inactive, Programming, Ready, Receive, Sleep,
    StandBy, Transfer,
};
use QueueRule::{Any, Drained, Off, On};
use ResponseKind::{R1, R1b, R2, R3, R4, R6, R7};
use Standard::{Both, Mmc, Sd};

/// Legal in the states given, where the card stays.
macro_rules! stays {
    ($($state:ident)*) => { &[$(($state, $state)),*] };
}

macro_rules! opcodes {
    ($($(#[$doc:meta])* $opcode:ident = $kind:ident $index:literal $standard:ident $response:path,
        $queue:ident, $moves:expr;)*) => {
        /// What a command means.
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
    /// Be as after power-up.
    GoIdle = CMD 0 Both ResponseKind::None, Any, &[
        (Idle, Idle), (Ready, Idle), (Identification, Idle), (StandBy, Idle), (Transfer, Idle),
        (Send, Idle), (Receive, Idle), (Programming, Idle), (Disconnect, Idle), (Sleep, Idle),
    ];
    /// Are you ready, eMMC?
    SendOpCond = CMD 1 Mmc R3, Off, &[(Idle, Ready)];
    /// Who is there?
    AllSendCid = CMD 2 Both R2, Off, &[(Ready, Identification)];
    /// Your address is ...
    SetRelativeAddr = CMD 3 Mmc R1, Off, &[(Identification, StandBy)];
    /// Choose an address.
    SendRelativeAddr = CMD 3 Sd R6, Off, &[(Identification, StandBy), (StandBy, StandBy)];
    /// Sleep.
    Sleep = CMD 5 Mmc R1b, Off, &[(StandBy, CardState::Sleep)];
    /// Wake up.
    Awake = CMD 5 Mmc R1b, Off, &[(CardState::Sleep, StandBy)];
    /// Is there an I/O card?
    IoSendOpCond = CMD 5 Sd R4, Off, stays![Idle];
    /// Change a byte of EXT_CSD.
    Switch = CMD 6 Mmc R1b, Drained, &[(Transfer, Programming)];
    /// Say, or change, which functions are on.
    SwitchFunction = CMD 6 Sd R1, Off, &[(Transfer, Send)];
    /// The bus has so many lanes.
    SetBusWidth = ACMD 6 Sd R1, Off, stays![Transfer];
    /// Be selected.
    Select = CMD 7 Both R1b, Drained, &[(StandBy, Transfer), (Disconnect, Programming)];
    /// Be selected no more.
    Deselect = CMD 7 Both ResponseKind::None, Drained, &[
        (StandBy, StandBy), (Transfer, StandBy), (Send, StandBy), (Programming, Disconnect),
    ];
    /// Send EXT_CSD.
    SendExtCsd = CMD 8 Mmc R1, Drained, &[(Transfer, Send)];
    /// Do you work at this voltage?
    SendIfCond = CMD 8 Sd R7, Off, stays![Idle];
    /// Send the CSD.
    SendCsd = CMD 9 Both R2, Off, stays![StandBy];
    /// Send the CID.
    SendCid = CMD 10 Both R2, Off, stays![StandBy];
    /// Signals go to 1.8 V.
    VoltageSwitch = CMD 11 Sd R1, Off, stays![Ready];
    /// No more data.
    StopTransmission = CMD 12 Both R1b, Any, &[(Send, Transfer), (Receive, Programming)];
    /// Leave what you are busy with, by CMD12.
    InterruptByStop = CMD 12 Mmc R1b, Any, &[(Receive, Programming), (Programming, Programming)];
    /// How are you?
    SendStatus = CMD 13 Both R1, Any,
        stays![StandBy Transfer Send Receive Programming Disconnect];
    /// Which tasks are ready?
    SendQueueStatus = CMD 13 Mmc R1, On, stays![Transfer Send Receive Programming];
    /// Leave what you are busy with, by CMD13.
    InterruptByStatus = CMD 13 Mmc R1b, Any, stays![Programming];
    /// Send the SD status.
    SdStatus = ACMD 13 Sd R1, Off, &[(Transfer, Send)];
    /// Never answer again.
    GoInactive = CMD 15 Both ResponseKind::None, Any, &[
        (StandBy, Inactive), (Transfer, Inactive), (Send, Inactive), (Receive, Inactive),
        (Programming, Inactive), (Disconnect, Inactive),
    ];
    /// Blocks have so many bytes.
    SetBlockLen = CMD 16 Both R1, Off, stays![Transfer];
    /// Read a block.
    ReadSingle = CMD 17 Both R1, Off, &[(Transfer, Send)];
    /// Read blocks.
    ReadMultiple = CMD 18 Both R1, Off, &[(Transfer, Send)];
    /// Send the block for tuning.
    SdTuningBlock = CMD 19 Sd R1, Off, &[(Transfer, Send)];
    /// Send the block for tuning.
    MmcTuningBlock = CMD 21 Mmc R1, Off, &[(Transfer, Send)];
    /// How many blocks of the last write are good?
    SendWrittenBlocks = ACMD 22 Sd R1, Off, &[(Transfer, Send)];
    /// The next transfer has so many blocks.
    SetBlockCount = CMD 23 Both R1, Off, stays![Transfer];
    /// Erase so many blocks ahead.
    SetPreEraseCount = ACMD 23 Sd R1, Off, stays![Transfer];
    /// Write a block.
    WriteSingle = CMD 24 Both R1, Off, &[(Transfer, Receive)];
    /// Write blocks.
    WriteMultiple = CMD 25 Both R1, Off, &[(Transfer, Receive)];
    /// The first block to erase.
    SdEraseStart = CMD 32 Sd R1, Off, stays![Transfer];
    /// The last block to erase.
    SdEraseEnd = CMD 33 Sd R1, Off, stays![Transfer];
    /// The first block or group to erase.
    MmcEraseStart = CMD 35 Mmc R1, Off, stays![Transfer];
    /// The last block or group to erase.
    MmcEraseEnd = CMD 36 Mmc R1, Off, stays![Transfer];
    /// Erase.
    Erase = CMD 38 Both R1b, Off, &[(Transfer, Programming)];
    /// Are you ready, SD?
    SdSendOpCond = ACMD 41 Sd R3, Off, &[(Idle, Ready)];
    /// The pull-up by which a card is found is on or off.
    SetCardDetect = ACMD 42 Sd R1, Off, stays![Transfer];
    /// A task's parameters.
    QueueTaskParameters = CMD 44 Mmc R1, On, stays![Transfer Send Receive Programming];
    /// A task's address.
    QueueTaskAddress = CMD 45 Mmc R1, On, stays![Transfer Send Receive Programming];
    /// Transfer a task that reads.
    ExecuteRead = CMD 46 Mmc R1, On, &[(Transfer, Send)];
    /// Transfer a task that writes.
    ExecuteWrite = CMD 47 Mmc R1, On, &[(Transfer, Receive)];
    /// Forget tasks.
    ManageTasks = CMD 48 Mmc R1b, On, &[(Transfer, Programming)];
    /// Send the SCR.
    SendScr = ACMD 51 Sd R1, Off, &[(Transfer, Send)];
    /// The next command is an application's.
    Application = CMD 55 Sd R1, Off,
        stays![Idle StandBy Transfer Send Receive Programming Disconnect];
}

impl Opcode {
    /// What the table says of it.
    #[must_use]
    pub const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Its number, 0 to 63.
    #[must_use]
    pub const fn index(self) -> u8 {
        self.row().index
    }

    /// Whether CMD55 must come before it.
    #[must_use]
    pub const fn is_application(self) -> bool {
        self.row().application
    }
}

/// As people write it: `CMD18`, `ACMD41`.
impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.is_application() { "ACMD" } else { "CMD" };
        write!(f, "{prefix}{}", self.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_contradicts_another() {
        for row in TABLE {
            assert_eq!(row.opcode.row().opcode, row.opcode);
            assert!(!row.moves.is_empty(), "{:?} is legal nowhere", row.opcode);
            for (at, (from, to)) in row.moves.iter().enumerate() {
                let before = &row.moves[..at];
                assert!(before.iter().all(|(other, _)| other != from), "{:?}", row.opcode);
                // Busy is told by the response.
                assert!(*to != Programming || from == to || row.response.has_busy());
            }
            let same = TABLE.iter().filter(|other| {
                (other.index, other.application) == (row.index, row.application)
                    && other.standard == row.standard
            });
            // Of one standard, one number has several meanings only by its argument.
            assert!(same.count() == 1 || [5, 7, 12, 13].contains(&row.index), "{:?}", row.opcode);
        }
    }
}
