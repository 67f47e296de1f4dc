//! A disk that keeps no data: it shows the cost of everything else.

use blockyard::driver::Issue;
use blockyard::status::Status;
use blockyard_std::parts::device::at_once::CarryOut;

#[derive(Debug)]
pub(crate) struct Nothing;

impl CarryOut for Nothing {
    fn carry_out(&mut self, _issue: &Issue<'_>) -> Status {
        Status::Ok
    }
}
