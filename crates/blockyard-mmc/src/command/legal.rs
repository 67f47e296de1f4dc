//! Which commands are legal in each state of a card (JESD84-B51 6.14; SD 4.8).

use super::opcode::{Opcode, QueueRule};
use super::state::{CardState, Queue};
use core::fmt;

/// A command that a card does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Illegal {
    /// The command.
    pub opcode: Opcode,
    /// The card's state.
    pub state: CardState,
    /// Its command queue.
    pub queue: Queue,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { opcode, state, queue } = self;
        write!(f, "{opcode} ({opcode:?}) is illegal in state {state:?} with the queue {queue:?}")
    }
}

impl core::error::Error for Illegal {}

/// Returns the state of a card after `opcode`, if a card in `state` takes it.
///
/// A command with data leaves the card in [`CardState::Data`] or [`CardState::Receive`], and one
/// with busy in [`CardState::Programming`] or [`CardState::Disconnect`]; see
/// [`CardState::after_data`] and [`CardState::after_busy`]. CMD1 and ACMD41 lead to
/// [`CardState::Ready`] only when the response says that the card is; before, it stays idle.
///
/// An application command is legal only right after CMD55, which the caller checks.
///
/// # Errors
///
/// Fails if the card does not take the command in that state. The card stays in it.
pub fn legal(state: CardState, opcode: Opcode, queue: Queue) -> Result<CardState, Illegal> {
    let row = opcode.row();
    let queue_allows = match row.queue {
        QueueRule::Off => queue == Queue::Off,
        QueueRule::Drained => queue != Queue::Busy,
        QueueRule::Any => true,
        QueueRule::On => queue != Queue::Off,
    };
    row.moves
        .iter()
        .find(|&&(from, _)| from == state && queue_allows)
        .map(|&(_, to)| to)
        .ok_or(Illegal { opcode, state, queue })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn all_commands_from_power_up_to_data_are_legal() {
        use CardState::*;
        let mmc = [
            Opcode::GoIdle,
            Opcode::SendOpCond,
            Opcode::AllSendCid,
            Opcode::SetRelativeAddr,
            Opcode::SendCsd,
            Opcode::Select,
            Opcode::WriteMultiple,
            Opcode::StopTransmission,
        ];
        assert_eq!(walk(Inactive, &mmc).unwrap_err().state, Inactive);
        assert_eq!(walk(Idle, &mmc), Ok(Programming));
        let sd = [
            Opcode::GoIdle,
            Opcode::SendIfCond,
            Opcode::Application,
            Opcode::SdSendOpCond,
            Opcode::VoltageSwitch,
            Opcode::AllSendCid,
            Opcode::SendRelativeAddr,
            Opcode::Select,
            Opcode::ReadMultiple,
            Opcode::StopTransmission,
            Opcode::Deselect,
        ];
        assert_eq!(walk(Idle, &sd), Ok(StandBy));
        assert_eq!((Receive.after_data(), Programming.after_busy()), (Programming, Transfer));
        assert_eq!((Data.after_data(), Disconnect.after_busy()), (Transfer, StandBy));
    }

    fn walk(from: CardState, opcodes: &[Opcode]) -> Result<CardState, Illegal> {
        opcodes.iter().try_fold(from, |state, &opcode| legal(state, opcode, Queue::Off))
    }

    #[test]
    fn commands_in_a_wrong_state_are_illegal() {
        use CardState::*;
        for (state, opcode, queue) in [
            (Transfer, Opcode::ReadMultiple, Queue::Empty),
            (Transfer, Opcode::WriteSingle, Queue::Busy),
            (Transfer, Opcode::SetBlockCount, Queue::Empty),
            (Transfer, Opcode::Switch, Queue::Busy),
            (Transfer, Opcode::ExecuteRead, Queue::Off),
            (Transfer, Opcode::SendQueueStatus, Queue::Off),
            (Programming, Opcode::WriteMultiple, Queue::Off),
            (Programming, Opcode::Switch, Queue::Off),
            (Data, Opcode::ReadSingle, Queue::Off),
            (Receive, Opcode::SetBlockCount, Queue::Off),
            (Transfer, Opcode::StopTransmission, Queue::Off),
            (Transfer, Opcode::InterruptByStatus, Queue::Off),
            (StandBy, Opcode::ReadSingle, Queue::Off),
            (Transfer, Opcode::SendCsd, Queue::Off),
            (Idle, Opcode::SendStatus, Queue::Off),
            (Inactive, Opcode::GoIdle, Queue::Off),
        ] {
            let illegal = legal(state, opcode, queue).unwrap_err();
            assert_eq!(illegal, Illegal { opcode, state, queue });
        }
        let text = legal(Transfer, Opcode::ReadMultiple, Queue::Empty).unwrap_err().to_string();
        assert_eq!(text, "CMD18 (ReadMultiple) is illegal in state Transfer with the queue Empty");
    }

    #[test]
    fn a_queue_takes_tasks_while_data_moves_and_settings_once_it_is_empty() {
        use CardState::*;
        for state in [Transfer, Data, Receive, Programming] {
            for opcode in [Opcode::QueueTaskParameters, Opcode::QueueTaskAddress] {
                assert_eq!(legal(state, opcode, Queue::Busy), Ok(state));
            }
            assert_eq!(legal(state, Opcode::SendQueueStatus, Queue::Busy), Ok(state));
        }
        assert_eq!(legal(Transfer, Opcode::ExecuteRead, Queue::Busy), Ok(Data));
        assert_eq!(legal(Transfer, Opcode::ExecuteWrite, Queue::Busy), Ok(Receive));
        assert_eq!(legal(Transfer, Opcode::Switch, Queue::Empty), Ok(Programming));
        assert_eq!(legal(Data, Opcode::StopTransmission, Queue::Busy), Ok(Transfer));
    }

    #[test]
    fn states_have_the_numbers_that_a_status_gives_them() {
        for state in CardState::ALL {
            let expected = Some(state).filter(|&state| state != CardState::Inactive);
            assert_eq!(CardState::from_number(state.number()), expected);
        }
        assert_eq!(CardState::Transfer.number(), 4);
        assert_eq!(CardState::Disconnect.number(), 8);
        assert_eq!(CardState::from_number(9), None);
    }
}
