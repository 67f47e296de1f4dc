//! The job files in `examples/posted` are like those that people post. All are answered. `./ci.sh
//! readme` runs the command that each of them states.

use std::fs;
use std::path::Path;

use blockyard_fio::job::{NoSource, parse_bytes};

#[test]
fn posted_jobs_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/posted");
    let mut read = 0;
    for entry in fs::read_dir(folder).expect("the examples should be part of the source") {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let head: Vec<_> = text.lines().take_while(|line| line.starts_with('#')).collect();
        assert!(head.iter().any(|line| line.ends_with('?')), "{name} states no question");
        let command = head.iter().find_map(|line| line.strip_prefix("# blockyard "));
        let command = command.unwrap_or_else(|| panic!("{name} states no command"));
        assert!(
            command.contains(&format!("examples/posted/{name} --device ")),
            "{name}: {command}"
        );
        parse_bytes(&name, text.as_bytes(), &NoSource).unwrap_or_else(|error| panic!("{error}"));
        read += 1;
    }
    assert!(read >= 30, "{read} are read");
}
