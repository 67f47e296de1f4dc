//! The rules that every change of the source keeps.

use blockyard_tidy::{count, modules, rules, tree};

#[test]
fn no_module_depends_on_itself_through_others() {
    let circles =
        tree::crates().into_iter().flat_map(|name| modules::circles(&tree::modules(&name)));
    let found: String = circles.map(|circle| circle.to_string()).collect();
    assert!(found.is_empty(), "{found}");
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
    for name in ["blockyard", "blockyard-mmc", "blockyard-btt", "blockyard-sim"] {
        let counts = count::count(&tree::modules(name));
        let enough = counts.assertions * 5 >= counts.functions;
        assert!(
            enough,
            "{name}: {} assertions in {} functions",
            counts.assertions, counts.functions
        );
    }
}
