//! The report of a lane to an operator: its disks and clients.

use crate::clients::weight::Weight;
use crate::observation::traffic::Traffic;
use blockyard::time::Duration;

/// The disks and clients of one lane.
#[derive(Debug, Default)]
pub(crate) struct Overview {
    /// The traffic of each disk, by its number.
    pub(crate) disks: Vec<Traffic>,
    pub(crate) clients: Vec<ClientView>,
}

/// A client of a lane.
#[derive(Clone, Debug)]
pub(crate) struct ClientView {
    /// The number of the client, which no other client of the server ever has.
    pub(crate) id: u64,
    /// The address and port, or the process at the other end of a unix socket.
    pub(crate) peer: String,
    /// The disk that the client has chosen, if any.
    pub(crate) disk: Option<usize>,
    /// The version of TLS; `None` without TLS.
    pub(crate) tls: Option<&'static str>,
    /// The time since the client came.
    pub(crate) age: Duration,
    /// The number of requests that it has sent.
    pub(crate) requests: u64,
    /// The bytes of its reads and writes that have ended.
    pub(crate) moved_bytes: u64,
    /// Its weight, if it has one.
    pub(crate) weight: Option<Weight>,
    /// The number of its requests at the disk.
    pub(crate) in_flight: usize,
}
