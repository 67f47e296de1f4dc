//! `show`: prints the file of a built-in profile, or a profile of the user with all that its bases
//! give it.

use std::io::Write;

use blockyard_devices::knobs::Recipe;
use blockyard_devices::profile::{
    Design, Device, FileSystem, ProfileError, builtin, canonical, drive_tables, family_tables,
    is_path, layers,
};
use toml::{Table, Value};

use crate::cli::Show;
use crate::message::Failure;
use crate::render::recipe::lines;

/// The keys that a profile does not take from its base.
const OWN: [&str; 4] = ["title", "origin", "base", "processors"];

pub(super) fn show(args: &Show, out: &mut dyn Write) -> Result<(), Failure> {
    let text = match builtin(&args.name) {
        Ok(builtin) => builtin.text.to_owned(),
        Err(unknown) if !is_path(&args.name) => return Err(unknown.into()),
        Err(_) => resolved(&args.name)?,
    };
    Ok(out.write_all((text + &recipe(args)?).as_bytes())?)
}

/// Returns how to give a disk the values of a design, as comments of its file; nothing for other
/// files.
fn recipe(args: &Show) -> Result<String, Failure> {
    let device = args.device.as_deref().map(Device::lookup).transpose()?;
    let design = match Design::lookup(canonical(&args.name)) {
        Ok(design) => design,
        Err(_) if device.is_none() => return Ok(String::new()),
        Err(error) => return Err(Failure::Input(format!("--device: {error}"))),
    };
    let lines = lines(&design.name, &Recipe::of(&design, device.as_ref(), &[]));
    let comments = lines.iter().map(|line| format!("# {line}\n"));
    Ok(format!("\n{}", comments.collect::<String>()))
}

/// Returns the profile at `path` as one file without a base.
fn resolved(path: &str) -> Result<String, Failure> {
    let texts = layers(path)?;
    let mut tables = texts.iter().map(|text| text.parse::<Table>().unwrap_or_default());
    let first = tables.next().unwrap_or_default();
    let all = tables.fold(first, |above, below| over(above, below, true));
    check(path, &all)?;
    let mut text = format!("# {path} with all that its bases give it.\n");
    write_table("", &all, &mut text);
    Ok(text)
}

/// Appends the keys of the table at `path`, and then its tables. A figure with its origin is one
/// line.
fn write_table(path: &str, table: &Table, text: &mut String) {
    let mut tables = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(figure) if figure.contains_key("value") => {
                let parts = ["value", "origin", "range"].into_iter();
                let parts = parts.filter_map(|key| Some(format!("{key} = {}", figure.get(key)?)));
                *text += &format!("{key} = {{ {} }}\n", parts.collect::<Vec<_>>().join(", "));
            }
            Value::Table(inner) => tables.push((key, inner)),
            other => *text += &format!("{key} = {other}\n"),
        }
    }
    for (key, inner) in tables {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        *text += &format!("\n[{path}]\n");
        write_table(&path, inner, text);
    }
}

/// Fails as a command would that uses the profile.
fn check(path: &str, all: &Table) -> Result<(), ProfileError> {
    if all.contains_key("filesystem") {
        return FileSystem::lookup(path).map(drop);
    }
    let is_device = family_tables().flatten().any(|key| all.contains_key(*key));
    let is_design = all.contains_key("queue");
    if is_device && !is_design {
        Device::lookup(path).map(drop)
    } else {
        Design::lookup(path).map(drop)
    }
}

/// Returns `above` with the keys of `below` that it lacks. At the top of a file, some keys never
/// come from below.
fn over(mut above: Table, below: Table, is_top: bool) -> Table {
    let model = family_tables().find(|keys| keys.iter().any(|key| above.contains_key(*key)));
    let other_models = family_tables().filter(|keys| model.is_some_and(|model| model != *keys));
    let other_models: Vec<&str> = other_models.flatten().copied().collect();
    let of_above = |parts: &&[&str]| parts.iter().any(|key| above.contains_key(*key));
    let chosen: Vec<_> = drive_tables().into_iter().filter(of_above).flatten().copied().collect();
    if is_top {
        // What they name is in the layers below.
        ["base", "processors"].iter().for_each(|key| drop(above.remove(*key)));
    }
    for (key, value) in below {
        let is_of_others = OWN.contains(&key.as_str())
            || other_models.contains(&key.as_str())
            || chosen.contains(&key.as_str()) && !above.contains_key(&key);
        if is_top && is_of_others {
            continue;
        }
        let merged = match (above.remove(&key), value) {
            // A figure with its origin replaces a figure as a whole.
            (Some(Value::Table(mine)), Value::Table(other)) if !mine.contains_key("value") => {
                Value::Table(over(mine, other, false))
            }
            (Some(mine), _) => mine,
            (None, value) => value,
        };
        above.insert(key, merged);
    }
    above
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(above: &str, below: &str) -> String {
        let [above, below] = [above, below].map(|text| text.parse::<Table>().expect("TOML"));
        over(above, below, true).to_string()
    }

    #[test]
    fn a_file_has_its_own_keys_and_those_of_its_base() {
        let below = "title = \"base\"\n[null]\ndepth = 1\nqueues = { value = 2, origin = \"x\" }\n[cpu]\na = 1\n";
        let above = "title = \"mine\"\nbase = \"null\"\n[null]\ndepth = 7\n";
        let all: Table = merged(above, below).parse().expect("TOML");
        assert_eq!(all["title"].as_str(), Some("mine"));
        assert_eq!(
            (all["null"]["depth"].as_integer(), all["cpu"]["a"].as_integer()),
            (Some(7), Some(1))
        );
        assert_eq!(all["null"]["queues"]["value"].as_integer(), Some(2));
        assert!(!all.contains_key("base"));
        let figure = merged("[null]\nqueues = { value = 3, origin = \"y\" }\n", below);
        assert!(figure.contains("origin = \"y\"") && !figure.contains("\"x\""), "{figure}");
    }

    #[test]
    fn another_model_replaces_that_of_the_base() {
        let all = merged("[null]\ndepth = 7\n", "[hba]\nluns = 1\n[limits]\ncapacity = \"1GiB\"\n");
        assert!(!all.contains("hba") && all.contains("capacity"), "{all}");
    }

    #[test]
    fn another_front_end_replaces_that_of_the_base_and_keeps_its_medium() {
        let all = merged("[ahci]\ndepth = 32\n", "[nvme]\ndepth = 8\n[crosspoint]\nchannels = 7\n");
        assert!(!all.contains("nvme") && all.contains("channels = 7"), "{all}");
    }
}
