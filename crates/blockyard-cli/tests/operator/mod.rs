//! A server with a control socket, and its operator.
#![allow(dead_code, reason = "each test uses a part of it")]

use crate::nbd::{self, Client, signal};
use core::time::Duration;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

pub(crate) struct Running {
    pub(crate) server: Child,
    pub(crate) socket: PathBuf,
    pub(crate) control: PathBuf,
}

pub(crate) fn blockyard(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.args(args).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The answer to a change of fault rules.
pub(crate) fn rules_from_now(rules: &str) -> String {
    format!("the fault rules of export \"\" from now on: {rules}\n")
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Starts a server with `disks` and a control socket.
pub(crate) fn start(disks: &[&str]) -> Running {
    let socket = nbd::socket();
    let control = nbd::socket();
    let address = format!("unix:{}", text(&socket));
    let args = [&["serve", "--nbd", &address, "--control", text(&control)], disks].concat();
    let server = nbd::answers(blockyard(&args).spawn().unwrap(), &socket);
    Running { server, socket, control }
}

impl Running {
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap()
    }

    pub(crate) fn ctl(&self, args: &[&str]) -> Output {
        blockyard(&[&["ctl", text(&self.control)], args].concat()).output().unwrap()
    }

    /// Does it; its text.
    pub(crate) fn does(&self, args: &[&str]) -> String {
        let output = self.ctl(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Asserts that it fails; the reason.
    pub(crate) fn refuses(&self, args: &[&str]) -> String {
        let output = self.ctl(args);
        assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn list(&self) -> Value {
        serde_json::from_str::<Value>(&self.does(&["--json", "list"])).unwrap()["ok"].take()
    }

    /// Waits until no export counts a client: the server notices some time after a client has
    /// closed its socket.
    pub(crate) fn until_no_client(&self) {
        let start = Instant::now();
        while self.list()["exports"].as_array().unwrap().iter().any(|of| of["clients"] != 0) {
            assert!(start.elapsed() < Duration::from_secs(20), "{}", self.list());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn caller(&self) -> Caller {
        let stream = UnixStream::connect(&self.control).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Caller(BufReader::new(stream))
    }

    /// Ends the server; its log.
    pub(crate) fn end(self) -> String {
        signal(&self.server, "-TERM");
        self.ended()
    }

    /// Waits for the end of the server; its log.
    pub(crate) fn ended(self) -> String {
        let start = Instant::now();
        let output = self.server.wait_with_output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(start.elapsed() < Duration::from_secs(20), "it ends: {log}");
        assert_eq!(output.status.code(), Some(0), "{log}");
        assert!(!self.control.exists() && !self.socket.exists(), "it removes its sockets");
        log
    }
}

/// A connection to the control socket.
pub(crate) struct Caller(pub(crate) BufReader<UnixStream>);

impl Caller {
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// The next answer; `None` at the end.
    pub(crate) fn answer(&mut self) -> Option<Value> {
        let mut line = String::new();
        let len = self.0.read_line(&mut line).unwrap();
        (len > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// The next answer, which is an error.
    pub(crate) fn error(&mut self) -> String {
        let answer = self.answer().unwrap();
        assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
        answer["error"].as_str().unwrap().to_owned()
    }
}
