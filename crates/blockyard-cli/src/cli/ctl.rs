//! The commands of `ctl`.

use std::path::PathBuf;

use blockyard_serve::control::Request;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = CTL_HELP)]
pub(crate) struct Ctl {
    /// The control socket of the server: the path that `serve --control` got
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,

    /// Print the server's answer as it is, a JSON object in one line
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: CtlCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CtlCommand {
    /// List exports and clients with their rates, which are measured for a second
    List,
    /// Disconnect a client at once; its requests in flight are not answered
    Disconnect {
        /// The number of the client, as `list` shows it
        #[arg(value_name = "CLIENT")]
        client: u64,
    },
    /// End the server as SIGTERM does: take no more requests, and answer those in flight
    Drain,
}

impl From<CtlCommand> for Request {
    fn from(command: CtlCommand) -> Self {
        match command {
            CtlCommand::List => Self::List {},
            CtlCommand::Disconnect { client } => Self::Disconnect { client },
            CtlCommand::Drain => Self::Drain {},
        }
    }
}

const CTL_HELP: &str = "\
Examples:
  blockyard serve disk.img --nbd unix:/run/disk.sock --control /run/disk.ctl
  blockyard ctl /run/disk.ctl list
  blockyard ctl /run/disk.ctl disconnect 3

Other programs may write to the socket themselves, a JSON object in each line:
  {\"command\":\"disconnect\",\"client\":3}
Each line is answered by one with \"ok\" and the result, or with \"error\" and the
reason.";
