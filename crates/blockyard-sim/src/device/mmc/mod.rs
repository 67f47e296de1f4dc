//! eMMC devices and SD cards: the card ([`card`]), the controller before it ([`controller`]) with
//! its command queue engine (`engine`), and the core's request path over both ([`host`]); what the bus between them was used for ([`used`]).

mod bus;
pub mod card;
pub mod controller;
mod engine;
mod fault;
pub mod host;
mod ledger;
mod pio;
mod registers;
#[cfg(test)]
mod tests;
mod tuning;
pub mod used;
