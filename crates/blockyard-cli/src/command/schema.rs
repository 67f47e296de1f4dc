//! `schema`: the JSON schema of an answer.

use std::io::Write;

use blockyard_answer as answer;

use crate::cli::{Described, Schema};
use crate::message::Failure;
use crate::render::json;

pub(super) fn schema(args: &Schema, out: &mut dyn Write) -> Result<(), Failure> {
    let schema = match args.of {
        Described::Whatif => answer::schema(),
    };
    Ok(out.write_all(json(&schema).as_bytes())?)
}
