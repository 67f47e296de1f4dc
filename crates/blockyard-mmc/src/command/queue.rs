//! Commands of the command queue (JESD84-B51 6.6.39; SD 6.0): CMD44 and CMD45 describe a task,
//! CMD13 reports tasks that are ready, and CMD46 or CMD47 executes a task. CMD48 of eMMC and CMD43
//! of SD remove tasks.

use super::address::Rca;
use super::catalogue::Command;
use super::data::Direction;
use super::opcode::Opcode;

/// A task's number, 0 to 31, below the depth of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(u8);

impl TaskId {
    /// The task with this number.
    ///
    /// # Panics
    ///
    /// Panics if `number` is above 31.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        assert!(number < 32, "task numbers are below 32");
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    const fn argument(self) -> u32 {
        (self.0 as u32) << 16
    }
}

/// The number of direct commands. If the engine takes them, tasks have lower numbers.
pub const DIRECT: TaskId = TaskId::new(31);

/// The parameters of a task in CMD44.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskParameters {
    /// The task's number.
    pub task: TaskId,
    /// The direction of its data.
    pub direction: Direction,
    /// Its blocks of 512 bytes, at least 1.
    pub blocks: u16,
    /// Bit 31: a reliable write.
    pub reliable: bool,
    /// Bit 29: the data is for the faster area.
    pub tagged: bool,
    /// Bit 24: the data goes to the medium past the cache.
    pub forced: bool,
    /// Bit 23: the task goes before tasks without this bit.
    pub high_priority: bool,
}

impl TaskParameters {
    /// A task without flags.
    #[must_use]
    pub const fn new(task: TaskId, direction: Direction, blocks: u16) -> Self {
        Self {
            task,
            direction,
            blocks,
            reliable: false,
            tagged: false,
            forced: false,
            high_priority: false,
        }
    }

    fn argument(self) -> u32 {
        u32::from(self.reliable) << 31
            | u32::from(self.direction == Direction::Read) << 30
            | u32::from(self.tagged) << 29
            | u32::from(self.forced) << 24
            | u32::from(self.high_priority) << 23
            | self.task.argument()
            | u32::from(self.blocks)
    }
}

/// Commands of the command queue.
impl Command {
    /// CMD44: a task's parameters.
    #[must_use]
    pub fn queue_task_parameters(parameters: TaskParameters) -> Self {
        Self::plain(Opcode::QueueTaskParameters, parameters.argument())
    }

    /// CMD45: the address of the task of the last CMD44, which is queued then.
    #[must_use]
    pub fn queue_task_address(address: u32) -> Self {
        Self::plain(Opcode::QueueTaskAddress, address)
    }

    /// CMD46: transfer the data of a ready task that reads.
    #[must_use]
    pub fn execute_read(task: TaskId, blocks: u16) -> Self {
        Self::blocks(Opcode::ExecuteRead, task.argument(), blocks)
    }

    /// CMD47: transfer the data of a ready task that writes.
    #[must_use]
    pub fn execute_write(task: TaskId, blocks: u16) -> Self {
        Self::blocks(Opcode::ExecuteWrite, task.argument(), blocks)
    }

    /// CMD43 of SD: forget all tasks.
    #[must_use]
    pub fn sd_discard_queue() -> Self {
        Self::plain(Opcode::ManageQueue, 1)
    }

    /// CMD48 of eMMC: forget all tasks.
    #[must_use]
    pub fn discard_queue() -> Self {
        Self::plain(Opcode::ManageTasks, 1)
    }

    /// CMD48 of eMMC: forget `task`.
    #[must_use]
    pub fn discard_task(task: TaskId) -> Self {
        Self::plain(Opcode::ManageTasks, task.argument() | 2)
    }

    /// CMD13 with bit 15: send the set of tasks that are ready, one bit each.
    #[must_use]
    pub fn send_queue_status(rca: Rca) -> Self {
        Self::plain(Opcode::SendQueueStatus, rca.argument() | 1 << 15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn arguments_have_their_bits_where_the_standard_puts_them() {
        let task = TaskId::new(31);
        let read = TaskParameters::new(task, Direction::Read, 0x80);
        let write = TaskParameters::new(TaskId::new(2), Direction::Write, 0xffff);
        let all = TaskParameters {
            reliable: true,
            tagged: true,
            forced: true,
            high_priority: true,
            ..write
        };
        for (command, text) in [
            (Command::queue_task_parameters(read), "CMD44 (0x401f0080)"),
            (Command::queue_task_parameters(write), "CMD44 (0x0002ffff)"),
            (Command::queue_task_parameters(all), "CMD44 (0xa182ffff)"),
            (Command::queue_task_address(7), "CMD45 (0x00000007)"),
            (Command::execute_read(task, 8), "CMD46 (0x001f0000)"),
            (Command::execute_write(task, 8), "CMD47 (0x001f0000)"),
            (Command::discard_queue(), "CMD48 (0x00000001)"),
            (Command::sd_discard_queue(), "CMD43 (0x00000001)"),
            (Command::discard_task(task), "CMD48 (0x001f0002)"),
            (Command::send_queue_status(Rca(1)), "CMD13 (0x00018000)"),
        ] {
            assert_eq!(command.to_string(), text);
        }
        assert_eq!(Command::execute_read(task, 8).data.unwrap().direction, Direction::Read);
        assert_eq!(Command::execute_write(task, 8).data.unwrap().direction, Direction::Write);
    }
}
