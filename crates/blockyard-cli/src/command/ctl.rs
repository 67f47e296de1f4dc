//! `ctl`: a command to a running server.

use core::time::Duration;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use blockyard_serve::control::{
    Answer, Changed, Disconnected, Draining, Listing, Request, Struck, Weighed,
};
use blockyard_serve::counted;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::{Ctl, CtlCommand};
use crate::message::Failure;
use crate::render::control;

pub(super) fn ctl(args: &Ctl, out: &mut dyn Write) -> Result<(), Failure> {
    let unusable = |error: io::Error| {
        let path = args.path.display();
        Failure::Run(match error.kind() {
            io::ErrorKind::ConnectionRefused => format!("{path}: no server listens there"),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let seconds = args.timeout.as_secs_f64();
                format!("{path}: the server does not answer within {seconds} s (--timeout)")
            }
            _ => format!("{path}: {error}"),
        })
    };
    let request = args.command.clone().request().map_err(Failure::Input)?;
    let line = ask(&args.path, &request, args.timeout).map_err(unusable)?;
    let answer: Answer = serde_json::from_str(&line)
        .map_err(|error| Failure::Run(format!("the server answers no JSON of ours: {error}")))?;
    let value = match answer {
        Answer::Ok(value) => value,
        Answer::Error(why) => return Err(Failure::Run(why)),
    };
    if args.json {
        return Ok(out.write_all(line.as_bytes())?);
    }
    let text = match &args.command {
        CtlCommand::List => control::listing(&read::<Listing>(value)?),
        CtlCommand::Disconnect { .. } => {
            let Disconnected { disconnected } = read(value)?;
            format!("client {disconnected} is disconnected\n")
        }
        CtlCommand::Weight { .. } => {
            let Weighed { weighed, weight } = read(value)?;
            format!("client {weighed} has the weight {weight}, for its next requests\n")
        }
        CtlCommand::Add { .. } => {
            let Changed { changed } = read(value)?;
            format!("export {changed:?} is there\n")
        }
        CtlCommand::Remove { .. } => {
            let Changed { changed } = read(value)?;
            format!("export {changed:?} is gone, and its disk is closed\n")
        }
        CtlCommand::Resize { size, .. } => {
            let Changed { changed } = read(value)?;
            format!("export {changed:?} has {}, for clients from now on\n", counted(size, "byte"))
        }
        CtlCommand::Rate { .. } | CtlCommand::Delay { .. } => {
            let Changed { changed } = read(value)?;
            format!("export {changed:?} is changed, for waiting and later requests\n")
        }
        CtlCommand::Fault { .. } => {
            let Struck { changed, rules } = read(value)?;
            let rules = if rules.is_empty() { "none".to_owned() } else { rules.join(", ") };
            format!("the fault rules of export {changed:?} from now on: {rules}\n")
        }
        CtlCommand::Drain | CtlCommand::Unknown(_) => {
            let Draining { in_flight } = read(value)?;
            let were = if in_flight == 1 { "was" } else { "were" };
            let requests = counted(in_flight, "request");
            format!("the server drains and ends; {requests} {were} in flight\n")
        }
    };
    Ok(out.write_all(text.as_bytes())?)
}

/// Sends `request` to the server at `path`. Returns its answer, a line.
///
/// # Errors
///
/// There is no server, or it takes longer than `timeout` to accept the connection and to answer.
fn ask(path: &Path, request: &Request, timeout: Duration) -> io::Result<String> {
    let until = Instant::now() + timeout;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The connect waits too, if the server does not accept.
    set_socket_timeout(&socket, Timeout::Send, Some(timeout))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let mut server = UnixStream::from(socket);
    writeln!(server, "{}", serde_json::to_string(request)?)?;
    let left = until.saturating_duration_since(Instant::now());
    server.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
    let mut line = String::new();
    match BufReader::new(server).read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line),
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value)
        .map_err(|error| Failure::Run(format!("the server is of another version: {error}")))
}
