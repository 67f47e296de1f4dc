//! The command queue engine (CQE): it has the bus, and as many requests as it has places for.
//!
//! A request that is prepared is given to the engine as a [task](task). The interrupt handler hears
//! of its end, and deferred work does the rest. Deferred work also does all that the engine itself
//! needs, one [step](step) at a time: the engine is [turned on](switch) when a request is ready,
//! turned off when another user needs the bus, and [recovered](recovery) when something failed.
//! [Direct commands](direct) go through the engine, too.
//!
//! ```text
//!        ready ──► SwitchQueue ─ Status ─ Enable ──►
//!   off                                              on ─ failure ─► recovery ──► on
//!        ◄── Status ─ SwitchQueue ─ Disable ◄──                         └─ Reset ──► off
//! ```

mod direct;
mod engine;
mod recovery;
mod step;
mod switch;
mod task;

pub use recovery::{CLEAR_LIMIT, HALT_LIMIT, LAST_HALT_LIMIT, TASK_LIMIT};
