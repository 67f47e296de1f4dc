//! eMMC devices and SD cards: what they are and how they are spoken to.
//!
//! - [`register`] reads the registers in which a card says what it is.

pub mod register;
