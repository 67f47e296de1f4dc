//! Memory that a door lends to the kernel.

use blockyard_std::parts::map::{Map, Pages};
use core::any::Any;
use std::rc::Rc;
use std::sync::Arc;

/// Memory that a door lends to the kernel for one operation.
#[derive(Debug)]
pub(crate) enum Lent {
    /// Bytes of the door.
    Bytes(Rc<[u8]>),
    /// A buffer of the lane.
    Pages { _pages: Rc<Pages> },
    /// Memory that lanes share, such as a disk's.
    Map { _map: Arc<Map> },
    /// A value that only the door understands.
    Own(Box<dyn Any>),
}
