//! `ctl`: a command to a running server.

use core::time::Duration;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use blockyard_serve::control::{Answer, Changed, Disconnected, Draining, Listing, Request, Struck};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::{Ctl, CtlCommand};
use crate::message::Failure;
use crate::render::control;

/// How long the server may take to answer: longer than it waits for clients and flushes.
const TIMEOUT: Duration = Duration::from_secs(120);

pub(super) fn ctl(args: &Ctl, out: &mut dyn Write) -> Result<(), Failure> {
    let unusable = |error: io::Error| {
        let path = args.path.display();
        Failure::Run(match error.kind() {
            io::ErrorKind::ConnectionRefused => format!("{path}: no server listens there"),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("{path}: the server does not answer")
            }
            _ => format!("{path}: {error}"),
        })
    };
    let request = args.command.clone().request().map_err(Failure::Input)?;
    let line = ask(&args.path, &request).map_err(unusable)?;
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
            format!("export {changed:?} has {size} bytes, for clients from now on\n")
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
            format!("the server drains and ends; {in_flight} requests were in flight\n")
        }
    };
    Ok(out.write_all(text.as_bytes())?)
}

/// Sends `request` to the server at `path`. Returns its answer, a line.
fn ask(path: &Path, request: &Request) -> io::Result<String> {
    let mut server = UnixStream::connect(path)?;
    server.set_read_timeout(Some(TIMEOUT))?;
    server.set_write_timeout(Some(TIMEOUT))?;
    writeln!(server, "{}", serde_json::to_string(request)?)?;
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
