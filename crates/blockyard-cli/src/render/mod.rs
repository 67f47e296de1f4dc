//! Renders answers for people. The values and their numbers are those of `blockyard_sim::answer`.

pub(crate) mod device;
pub(crate) mod faults;
pub(crate) mod job_time;
mod life;
mod mmc;
mod pmem;
pub(crate) mod table;
pub(crate) mod verified;
pub(crate) mod whatif;
