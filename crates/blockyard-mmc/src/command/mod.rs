//! Commands and responses: the protocol between host and card.
//!
//! Each [`Command`] has a constructor named after what it does, so that argument, response and data
//! always fit. Commands are those of JESD84-B51 6.10 (eMMC) and SD 4.7 (SD). If the two give one
//! number two meanings, there are two [`Opcode`]s.

mod address;
mod catalogue;
mod data;
pub mod erase;
pub mod legal;
pub mod opcode;
pub mod packed;
pub mod queue;
pub mod response;
pub mod state;
pub mod status;

pub use address::{Addressing, Rca};
pub use catalogue::{BlockCount, Command, SwitchAccess};
pub use data::{Data, Direction};
pub use opcode::{Opcode, Standard};
pub use response::{Response, ResponseKind};
