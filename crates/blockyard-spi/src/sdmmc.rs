//! The block device of [`embedded-sdmmc`](https://docs.rs/embedded-sdmmc) over a blocking [`Disk`].

use crate::blocking::Disk;
use crate::disk::{Failure, Io};
use core::array;
use core::cell::RefCell;
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::OutputPin;
use embedded_hal::spi::SpiBus;
use embedded_sdmmc_types::blockdevice::{Block, BlockCount, BlockDevice, BlockIdx};

/// I/Os that one call of the disk gets.
const AT_ONCE: usize = 8;

/// A disk that a file system shares. Blocks of one call that follow each other become one transfer.
#[derive(Debug)]
pub struct Shared<Bus, Cs, Delay>(RefCell<Disk<Bus, Cs, Delay>>);

impl<Bus, Cs, Delay> Shared<Bus, Cs, Delay> {
    /// Returns the block device over `disk`.
    pub const fn new(disk: Disk<Bus, Cs, Delay>) -> Self {
        Self(RefCell::new(disk))
    }

    /// Returns the disk.
    pub fn into_disk(self) -> Disk<Bus, Cs, Delay> {
        self.0.into_inner()
    }
}

impl<Bus: SpiBus, Cs: OutputPin, Delay: DelayNs> Shared<Bus, Cs, Delay> {
    /// Does one I/O for each of `blocks`, from `start` on.
    fn run<'a, T: 'a>(
        &self,
        start: BlockIdx,
        mut blocks: impl ExactSizeIterator<Item = T>,
        io: impl Fn(u64, T) -> Io<'a>,
    ) -> Result<(), Failure> {
        let mut sectors = u64::from(start.0)..;
        while blocks.len() > 0 {
            let used = blocks.len().min(AT_ONCE);
            let mut ios: [_; AT_ONCE] = array::from_fn(|_| {
                let next = sectors.next().zip(blocks.next());
                next.map_or_else(Io::flush, |(sector, block)| io(sector, block))
            });
            self.0.borrow_mut().run(&mut ios[..used])?;
        }
        Ok(())
    }
}

impl<Bus: SpiBus, Cs: OutputPin, Delay: DelayNs> BlockDevice for Shared<Bus, Cs, Delay> {
    type Error = Failure;

    fn read(&self, blocks: &mut [Block], start: BlockIdx) -> Result<(), Failure> {
        self.run(start, blocks.iter_mut(), |sector, block| Io::read(sector, &mut block.contents))
    }

    fn write(&self, blocks: &[Block], start: BlockIdx) -> Result<(), Failure> {
        self.run(start, blocks.iter(), |sector, block| Io::write(sector, &block.contents))
    }

    fn num_blocks(&self) -> Result<BlockCount, Failure> {
        let sectors = self.0.borrow().0.identity().sectors();
        Ok(BlockCount(u32::try_from(sectors).unwrap_or(u32::MAX)))
    }
}
