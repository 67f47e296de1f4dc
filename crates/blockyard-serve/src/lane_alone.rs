//! A lane without a server, which runs on the caller's thread, for benchmarks and tests.

use crate::clients::newcomers::{Origin, Ticket};
use crate::clients::peer::Peer;
use crate::disk::roster::Roster;
use crate::disk::{Disk, DiskConfig};
use crate::door::memory::MemoryDoor;
use crate::door::nbd;
use crate::lane::door::Door;
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
    run::<nbd::Client>(disk, io, nbd::Arrival::New(Peer::connected(client)), |roster| {
        Ok(Arc::new(nbd::Shared::new(roster).map_err(io::Error::other)?))
    })
}

/// Serves one client in memory until it submits no more requests.
///
/// # Errors
///
/// Fails as [`serve`] does.
pub fn serve_memory(disk: &DiskConfig, io: IoEngine, client: Rounds) -> io::Result<()> {
    run::<MemoryDoor>(disk, io, client, |_| Ok(()))
}

/// Runs a lane of one disk with one door for `arrival`. The lane drains when the door closes.
fn run<D: Door>(
    disk: &DiskConfig,
    io: IoEngine,
    arrival: D::Arrival,
    doors: impl FnOnce(&Arc<Roster>) -> io::Result<D::Shared>,
) -> io::Result<()> {
    let (entrance, parts) = parts::<D>(disk, io, doors)?;
    entrance.send(Message::Arrival(arrival, Some(ticket(&parts))));
    drop(entrance);
    Lane::new(parts)?.serve()
}

/// Registers the client of the lane with `parts`.
pub(crate) fn ticket<D: Door>(parts: &LaneParts<D>) -> Ticket {
    parts.shared.newcomers.enter(Origin::Unknown, 0)
}

/// Returns the parts of a lane of one disk, and its entrance for one client.
pub(crate) fn parts<D: Door>(
    disk: &DiskConfig,
    io: IoEngine,
    doors: impl FnOnce(&Arc<Roster>) -> io::Result<D::Shared>,
) -> io::Result<(Entrance<D::Arrival>, LaneParts<D>)> {
    let bell = Arc::new(bell::bell()?);
    let bells = vec![Arc::clone(&bell)];
    let opened = Disk::open(disk, &bells, None).map_err(io::Error::other)?;
    let roster = Arc::new(Roster::new([(opened, disk.clone())]));
    let doors = doors(&roster)?;
    let shared = Arc::new(Shared {
        bells,
        roster,
        patience: core::time::Duration::MAX,
        lane_bytes_max: 256 << 20,
        polls: false,
        io,
        is_metered: false,
        failures: None,
        watcher: None,
        connections: Arc::default(),
        newcomers: Arc::default(),
        ends_with_last: Some(Arc::clone(&bell)),
    });
    let (entrance, messages) = Entrance::new(Arc::clone(&bell));
    let load = Arc::clone(&entrance.load);
    load.store(1, Ordering::Relaxed);
    shared.connections.store(1, Ordering::Relaxed);
    let entrances = Arc::new([]); // the lane is the only one
    Ok((entrance, LaneParts { number: 0, shared, doors, messages, entrances, bell, load }))
}
