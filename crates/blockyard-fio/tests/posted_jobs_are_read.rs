//! The job files in `examples/posted` are like those that people post. Most are answered; those
//! with buffered writes that are rarely synced are refused for that reason. `./ci.sh readme` runs
//! the command that each of them states.

use std::fs;
use std::path::Path;

use blockyard_fio::job::{Buffered, Fault, NoSource, parse_bytes};

#[test]
fn posted_jobs_are_read_or_need_buffered_writes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/posted");
    let mut read = 0;
    let mut buffered = 0;
    for entry in fs::read_dir(folder).expect("the examples should be part of the source") {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let head: Vec<_> = text.lines().take_while(|line| line.starts_with('#')).collect();
        assert!(head.iter().any(|line| line.ends_with('?')), "{name} states no question");
        let refused = head.iter().any(|line| line.contains("buffered writes come later"));
        let command = head.iter().find_map(|line| line.strip_prefix("# blockyard "));
        let command = command.unwrap_or_else(|| panic!("{name} states no command"));
        assert!(
            command.contains(&format!("examples/posted/{name} --device ")),
            "{name}: {command}"
        );
        match parse_bytes(&name, text.as_bytes(), &NoSource) {
            Ok(_) if !refused => read += 1,
            Err(error) if refused => {
                assert_eq!(error.fault, Fault::Buffered(Buffered::RareSyncs), "{error}");
                assert!(error.to_string().contains("buffered writes come later"), "{error}");
                buffered += 1;
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(
        read >= 22 && read + buffered >= 30,
        "{read} are read, {buffered} need buffered writes"
    );
}
