//! A lane without a server, which runs on the caller's thread, for benchmarks and tests.

use crate::clients::peer::{Origin, Peer};
use crate::disk::roster::Roster;
use crate::disk::{Disk, DiskConfig};
use crate::door::nbd;
use crate::lane::door::Arrival;
use crate::lane::entrance::{Entrance, Message};
use crate::lane::{Lane, LaneParts, Shared};
use blockyard_std::parts::bell;
use blockyard_std::parts::ring::IoEngine;
use core::sync::atomic::Ordering;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub use crate::door::memory::{Ask, Memory, Next, Rounds};

/// Serves one client, connected through the socket `client`, until it disconnects.
///
/// # Errors
///
/// Fails if the disk cannot be opened, the engine cannot be had, or the lane fails.
pub fn serve(disk: &DiskConfig, io: IoEngine, client: OwnedFd) -> io::Result<()> {
    let (entrance, parts) = parts(disk, io)?;
    let arrival = nbd_client(&parts, client)?;
    run(entrance, parts, [arrival])
}

/// Serves one client in memory until it submits no more requests.
///
/// # Errors
///
/// Fails as [`serve`] does.
pub fn serve_memory(disk: &DiskConfig, io: IoEngine, client: Rounds) -> io::Result<()> {
    let (entrance, parts) = parts(disk, io)?;
    run(entrance, parts, [Box::new(client) as Box<dyn Arrival>])
}

/// Runs a lane with a door for each of `arrivals`. The lane drains when the last door closes.
pub(crate) fn run<const N: usize>(
    entrance: Entrance,
    parts: LaneParts,
    arrivals: [Box<dyn Arrival>; N],
) -> io::Result<()> {
    parts.load.store(N, Ordering::Relaxed);
    parts.shared.connections.store(N, Ordering::Relaxed);
    for arrival in arrivals {
        entrance.send(Message::Arrival(arrival));
    }
    drop(entrance);
    Lane::new(parts)?.serve()
}

/// Returns an NBD client of the lane with `parts`, connected through `socket`.
pub(crate) fn nbd_client(parts: &LaneParts, socket: OwnedFd) -> io::Result<Box<dyn Arrival>> {
    let shared = nbd::Shared::new(&parts.shared.roster).map_err(io::Error::other)?;
    let ticket = shared.newcomers.enter(Origin::Unknown, 0);
    let peer = Peer::from_connected(socket);
    Ok(Box::new(nbd::Newcomer { peer, ticket, shared: Arc::new(shared) }))
}

/// Returns the parts of a lane of one disk, and its entrance.
pub(crate) fn parts(disk: &DiskConfig, io: IoEngine) -> io::Result<(Entrance, LaneParts)> {
    let bell = Arc::new(bell::bell()?);
    let bells = vec![Arc::clone(&bell)];
    let opened = Disk::open(disk, &bells, None).map_err(io::Error::other)?;
    let shared = Arc::new(Shared {
        bells,
        roster: Arc::new(Roster::new([(opened, disk.clone())])),
        patience: core::time::Duration::MAX,
        lane_bytes_max: 256 << 20,
        polls: false,
        io,
        is_metered: false,
        failures: None,
        watcher: None,
        connections: Arc::default(),
        ends_with_last: Some(Arc::clone(&bell)),
    });
    let (entrance, messages) = Entrance::new(Arc::clone(&bell));
    let load = Arc::clone(&entrance.load);
    let entrances = Arc::new([]); // the lane is the only one
    Ok((entrance, LaneParts { number: 0, shared, messages, entrances, bell, load }))
}
