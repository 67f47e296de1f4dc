//! The rules that every change of the source keeps.

use xtask::project;
use xtask::tidy::ratchet::Table;
use xtask::tidy::{count, modules, rules, style, tree};

#[test]
fn no_module_depends_on_itself_through_others() {
    let circles =
        tree::crates().into_iter().flat_map(|name| modules::circles(&tree::modules(&name)));
    let found: String = circles.map(|circle| circle.to_string()).collect();
    assert!(found.is_empty(), "{found}");
}

/// `serve`, with `--as` and `--trace`, uses the models of devices without the simulator, although
/// its package also has the commands that simulate.
#[test]
fn serve_names_no_crate_that_needs_the_simulator() {
    let simulator = "blockyard-sim";
    let named = modules::crates_named(&tree::modules("blockyard-cli"), "command::serve");
    for part in ["blockyard_devices", "blockyard_serve", "blockyard_trace"] {
        assert!(named.contains_key(part), "{part} is not found: {named:?}");
    }
    for (name, by) in named {
        let needed = project::needed_by(&name.replace('_', "-"));
        let is_free = !needed.contains(simulator);
        assert!(is_free, "{by} of the command line names {name}, which needs {simulator}");
    }
}

#[test]
fn every_rule_is_declared_once_and_cited_by_code_and_by_a_test() {
    let rules = rules::rules();
    assert!(!rules.declared.is_empty(), "no header declares a rule");
    let faults = rules.faults();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// smoltcp has 0.27 assertions per function, redb 0.18.
#[test]
fn a_fifth_of_an_assertion_stands_in_each_function() {
    let groups: [&[&str]; 4] = [
        &["blockyard"],
        &["blockyard-mmc"],
        &["blockyard-btt"],
        &["blockyard-devices", "blockyard-sim"],
    ];
    for group in groups {
        let counts: Vec<_> = group.iter().map(|name| count::count(&tree::modules(name))).collect();
        let assertions: usize = counts.iter().map(|of| of.assertions).sum();
        let functions: usize = counts.iter().map(|of| of.functions).sum();
        assert!(assertions * 5 >= functions, "{group:?}: {assertions} in {functions} functions");
    }
}

/// The table says how many violations of style remain in each part. It follows each change, so it
/// only falls.
#[test]
fn the_violations_of_style_are_those_that_the_table_allows() {
    let today = Table::count(&style::violations());
    let differences = Table::allowed().differences(&today);
    assert!(
        differences.is_empty(),
        "{}\n`./ci.sh tidy style [PART]` lists the violations; once they are fewer, run `./ci.sh tidy lower`",
        differences.join("\n")
    );
}

/// A package that lists its tests gathers its behaviours in one program, `tests/main.rs`: a file
/// that it does not name would never be compiled.
#[test]
fn every_file_of_tests_is_compiled() {
    let forgotten: Vec<String> = tree::crates()
        .iter()
        .flat_map(|name| tree::forgotten_tests(&tree::root().join("crates").join(name)))
        .collect();
    assert!(forgotten.is_empty(), "neither a target nor a module of tests/main.rs: {forgotten:?}");
}
