//! eMMC devices and SD cards: the card ([`card`]), the controller before it ([`controller`]) with
//! its command queue engine (`engine`), and the core's request path over both ([`host`]); what the bus between them was used for ([`used`]).

mod bus;
pub mod card;
pub mod contexts;
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

use blockyard::time::Duration;

/// The time of `bytes` at so much for each KiB, rounded up.
fn per_kib(kib: Duration, bytes: u32) -> Duration {
    Duration::from_ns((kib.as_ns() * u64::from(bytes)).div_ceil(1024))
}
