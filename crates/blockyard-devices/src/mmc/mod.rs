//! eMMC devices and SD cards: the card ([`card`]), its controller ([`controller`]) with the command
//! queue engine (`engine`), the request path over both ([`host`]), the state machine of the
//! driver's contexts ([`contexts`]), and the uses of the bus ([`used`]).

mod bus;
pub mod card;
pub mod contexts;
pub mod controller;
mod dma;
mod engine;
pub mod evidence;
mod family;
mod fault;
pub mod figures;
pub mod host;
mod ledger;
mod pio;
pub(crate) mod profile;
mod registers;
pub(crate) mod tables;
mod tasks;
#[cfg(test)]
mod tests;
mod tuning;
pub mod used;

use blockyard::time::Duration;

/// The time for `bytes` at `kib` for each KiB, rounded up.
fn per_kib(kib: Duration, bytes: u32) -> Duration {
    Duration::from_ns((kib.as_ns() * u64::from(bytes)).div_ceil(1024))
}
