//! eMMC devices and SD cards: what they are and how they are spoken to.
//!
//! - [`register`] reads the registers in which a card says what it is.
//! - [`command`] makes commands and reads responses; its tables say what is legal when.
//! - [`mode`] says what a bus mode costs on the wire, and which one is best for a card on a
//!   [`host`].

pub mod command;
pub mod host;
pub mod mode;
pub mod register;
