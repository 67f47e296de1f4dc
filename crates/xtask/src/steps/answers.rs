//! Steps that compare answers with others of the same question.

use crate::command::Run;
use crate::console::{Outcome, fail, say};
use crate::install::want;
use crate::project::{program, target};
use std::fs;
use std::path::Path;

/// `repeat`
pub(super) fn repeat(_: &[String]) -> Outcome {
    let folder = target().join("repeat");
    fs::create_dir_all(&folder).expect("folder of answers");
    for profile in ["release", "dev"] {
        let build = Run::new("cargo build -q --locked --profile").arg(profile);
        build.words("-p blockyard-cli").check()?;
    }
    for job in ["examples/scsi-randread.fio", "examples/mixed.fio"] {
        let first = answer_of(job, "release")?;
        let second = answer_of(job, "release")?;
        let debug = answer_of(job, "debug")?;
        compare(&folder, &first, &second)?;
        compare(&folder, &first, &debug)?;
        say(&format!("{job}: the same bytes three times"));
    }
    Ok(())
}

/// The answer of a build to a question with a fixed seed.
fn answer_of(job: &str, build: &str) -> Outcome<String> {
    let whatif = Run::program(target().join(build).join("blockyard")).arg("whatif").arg(job);
    let arguments = "--device qla2xxx --seed 5 --design mq-none,mq-deadline,mq-deadline-2017 \
                     --output-format json";
    whatif.words(arguments).output()
}

/// Compares two answers; keeps both in `folder` if they differ.
fn compare(folder: &Path, one: &str, other: &str) -> Outcome {
    if one == other {
        return Ok(());
    }
    fs::write(folder.join("one"), one).expect("answer");
    fs::write(folder.join("other"), other).expect("answer");
    fail(format!("the answers {0}/one and {0}/other differ", folder.display()))
}

/// `answers`
pub(super) fn answers(_: &[String]) -> Outcome {
    want("python3", &["python3"])?;
    Run::new("cargo build -q --locked --release -p blockyard-cli").check()?;
    let check = Run::new("ci/compare-answers.py check").arg(program()).arg("ci/answers.txt");
    if check.succeeds() { Ok(()) } else { fail("answers changed: see ./ci.sh") }
}
