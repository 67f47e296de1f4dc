//! The machine: all unsafe code of this program. A PC with one processor and less than 3 GiB of
//! memory, whose addresses are physical ones.

mod boot;
mod dma;
mod heap;
mod interrupt;
mod port;

pub(crate) use dma::DmaMemory;
pub(crate) use interrupt::Line;
pub(crate) use port::{Mmio, ports, time_stamp};
