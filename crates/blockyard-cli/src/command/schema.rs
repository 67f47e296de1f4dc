//! `schema`: the JSON schema of an answer.

use std::io::Write;

use blockyard_sim::answer;

use crate::cli::{Described, Schema};
use crate::message::Failure;

pub(super) fn schema(args: &Schema, out: &mut dyn Write) -> Result<(), Failure> {
    let schema = match args.of {
        Described::Whatif => answer::schema(),
    };
    let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    Ok(writeln!(out, "{text}")?)
}
