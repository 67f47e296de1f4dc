//! eMMC devices and SD cards: the card ([`card`]), the controller before it ([`controller`]), and the
//! core's request path over both ([`host`]); what the bus between them was used for ([`used`]).

mod bus;
pub mod card;
pub mod controller;
mod fault;
pub mod host;
mod ledger;
mod pio;
mod registers;
pub mod used;
