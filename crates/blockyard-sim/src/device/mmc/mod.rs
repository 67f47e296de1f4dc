//! Models of eMMC devices and SD cards.

pub mod card;
