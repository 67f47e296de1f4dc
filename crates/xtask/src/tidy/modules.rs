//! Circular dependencies between the modules of a crate.
//!
//! A module depends on a sibling if a path in its files names an item that the sibling's files
//! define. Re-exports are followed to the definition, and are no dependency themselves. A parent
//! and its children are one module to the siblings of the parent; between themselves they do not
//! count, because a parent's type may have its methods in several files. Code for tests does not
//! count.

use crate::tidy::tree::{Module, is_test};
use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Ident, Item, ItemMod, ItemUse, Path, UseTree, Visibility};

/// Sibling modules that depend on each other.
#[derive(Debug)]
pub struct Circle {
    /// From which file to which one, and a name that the first takes from the second.
    pub(crate) dependencies: Vec<(String, String, String)>,
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "circular dependency:")?;
        self.dependencies
            .iter()
            .try_for_each(|(from, to, name)| writeln!(f, "  {from} -> {to}: {name}"))
    }
}

/// The names in a path.
type Names = Vec<String>;

/// Which sibling depends on which, with the two files and the name in one such path.
type Arrows<'a> = BTreeMap<(&'a str, &'a str), (String, String, String)>;

/// The names that a module's file defines and uses.
#[derive(Default)]
struct Scope {
    /// Items that the file defines.
    defined: BTreeSet<String>,
    /// Names that it imports or re-exports, and the path that each stands for.
    imported: BTreeMap<String, Names>,
    /// Paths that are no re-export.
    used: Vec<Names>,
}

/// The scope of each module, by its path.
type Scopes<'a> = BTreeMap<&'a [String], Scope>;

fn scopes_of(modules: &[Module]) -> Scopes<'_> {
    modules.iter().map(|module| (module.path.as_slice(), scope_of(module))).collect()
}

/// The crates that the module `start` names, directly or through other modules of its crate, each
/// with a module that names it. A module brings along those below it, because a type may have its
/// methods there. The path of `start` has `::` between its parts.
///
/// # Panics
///
/// Panics if there is no module `start`.
#[must_use]
pub fn crates_named(modules: &[Module], start: &str) -> BTreeMap<String, String> {
    let scopes = scopes_of(modules);
    let start: Names = start.split("::").map(str::to_owned).collect();
    assert!(scopes.contains_key(start.as_slice()), "there is no module {start:?}");
    let mut named = BTreeMap::new();
    let mut seen: BTreeSet<&[String]> = BTreeSet::new();
    let mut open = vec![start.as_slice()];
    while let Some(top) = open.pop() {
        for (path, scope) in scopes.iter().filter(|(path, _)| path.starts_with(top)) {
            if !seen.insert(path) {
                continue;
            }
            for used in &scope.used {
                match resolve(&scopes, path, used, 0) {
                    Some(to) => open.push(to),
                    None => drop(named.entry(used[0].clone()).or_insert_with(|| path.join("::"))),
                }
            }
        }
    }
    named
}

/// The circles of a crate, level by level.
#[must_use]
pub fn circles(modules: &[Module]) -> Vec<Circle> {
    let scopes = scopes_of(modules);
    // By parent: the siblings that depend on each other, and where.
    let mut levels: BTreeMap<&[String], Arrows> = BTreeMap::new();
    let files: BTreeMap<&[String], String> = modules
        .iter()
        .map(|module| (module.path.as_slice(), module.file.display().to_string()))
        .collect();
    for module in modules {
        let from = module.path.as_slice();
        for path in &scopes[from].used {
            let Some(to) = resolve(&scopes, from, path, 0) else { continue };
            let level = from.iter().zip(to).take_while(|(one, other)| one == other).count();
            if let (Some(one), Some(other)) = (from.get(level), to.get(level)) {
                levels
                    .entry(&from[..level])
                    .or_default()
                    .entry((one.as_str(), other.as_str()))
                    .or_insert_with(|| (files[from].clone(), files[to].clone(), path.join("::")));
            }
        }
    }
    let mut circles = vec![];
    for arrows in levels.values() {
        circles.extend(components(arrows).iter().map(|members| circle_of(arrows, members)));
    }
    circles
}

/// The dependencies of `members` on each other.
fn circle_of(arrows: &Arrows, members: &BTreeSet<&str>) -> Circle {
    let mutual =
        arrows.iter().filter(|((from, to), _)| members.contains(from) && members.contains(to));
    Circle { dependencies: mutual.map(|(_, dependency)| dependency.clone()).collect() }
}

/// The file that defines what `path` names as seen in `module`; none if it is of another crate.
fn resolve<'a>(
    scopes: &Scopes<'a>,
    module: &[String],
    path: &[String],
    depth: u32,
) -> Option<&'a [String]> {
    let mut at = module.to_vec();
    let mut rest = path;
    let mut first = true;
    // A circle of imports would not compile; globs that name each other could.
    if depth > 8 {
        return None;
    }
    while let Some((name, after)) = rest.split_first() {
        let child: Vec<String> = at.iter().cloned().chain([name.clone()]).collect();
        let scope = &scopes[at.as_slice()];
        match name.as_str() {
            "crate" if first => at.clear(),
            "self" if first => {}
            "super" => {
                at.pop()?;
            }
            _ if scopes.contains_key(child.as_slice()) => at = child,
            _ if scope.defined.contains(name) => break,
            _ => {
                let Some(target) = scope.imported.get(name) else {
                    // Of another crate, of the prelude, or by way of a glob.
                    if first {
                        return None;
                    }
                    break;
                };
                let path: Names = target.iter().chain(after).cloned().collect();
                return resolve(scopes, &at, &path, depth + 1);
            }
        }
        first = false;
        rest = after;
    }
    scopes.keys().copied().find(|path| *path == at.as_slice())
}

fn scope_of(module: &Module) -> Scope {
    let mut reader = Reader::default();
    reader.visit_file(&module.syntax);
    reader.scope
}

#[derive(Default)]
struct Reader {
    scope: Scope,
}

/// The path `prefix::name`.
fn extended(prefix: &Names, name: &Ident) -> Names {
    prefix.iter().cloned().chain([name.to_string()]).collect()
}

impl Reader {
    fn imports(&mut self, tree: &UseTree, prefix: &Names, re_export: bool) {
        match tree {
            UseTree::Path(path) => {
                self.imports(&path.tree, &extended(prefix, &path.ident), re_export)
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.imports(tree, prefix, re_export));
            }
            UseTree::Glob(_) => self.import(None, prefix.clone(), re_export),
            UseTree::Name(name) if name.ident == "self" => {
                let alias = prefix.last().cloned();
                self.import(alias, prefix.clone(), re_export);
            }
            UseTree::Name(name) => {
                let path = extended(prefix, &name.ident);
                self.import(Some(name.ident.to_string()), path, re_export);
            }
            UseTree::Rename(rename) => {
                let path = extended(prefix, &rename.ident);
                self.import(Some(rename.rename.to_string()), path, re_export);
            }
        }
    }

    fn import(&mut self, alias: Option<String>, path: Names, re_export: bool) {
        if !re_export {
            self.scope.used.push(path.clone());
        }
        if let Some(alias) = alias {
            self.scope.imported.insert(alias, path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name) = match item {
            Item::Const(item) => (&item.attrs, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
            Item::Impl(item) => (&item.attrs, None),
            Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
            Item::Mod(item) => (&item.attrs, None),
            Item::Static(item) => (&item.attrs, Some(&item.ident)),
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::Type(item) => (&item.attrs, Some(&item.ident)),
            Item::Use(item) => (&item.attrs, None),
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            self.scope.defined.extend(name.map(ToString::to_string));
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        // A module within the file belongs to the file; `super` in it then means the file itself.
        if let Some((_, items)) = &module.content {
            self.scope.defined.insert(module.ident.to_string());
            for item in items.iter().filter(|item| !matches!(item, Item::Use(_))) {
                self.visit_item(item);
            }
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let re_export = !matches!(item.vis, Visibility::Inherited);
        self.imports(&item.tree, &vec![], re_export);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names: Names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 {
            self.scope.used.push(names);
        }
        visit::visit_path(self, path);
    }
}

/// The siblings that `start` depends on, directly or through others.
fn reached<'a>(arrows: &Arrows<'a>, start: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        let next = arrows.keys().filter(|(from, _)| *from == node).map(|(_, to)| *to);
        open.extend(next.filter(|to| seen.insert(*to)));
    }
    seen
}

/// The sets of two or more siblings that reach each other.
fn components<'a>(arrows: &Arrows<'a>) -> Vec<BTreeSet<&'a str>> {
    let all: BTreeSet<&str> = arrows.keys().flat_map(|(from, to)| [*from, *to]).collect();
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        all.iter().map(|node| (*node, reached(arrows, node))).collect();
    let mut found: Vec<BTreeSet<&str>> = vec![];
    for node in all.into_iter().filter(|node| reach[node].contains(node)) {
        if !found.iter().any(|members| members.contains(node)) {
            let mutual = |to: &&str| reach[*to].contains(node);
            found.push(reach[node].iter().copied().filter(mutual).collect());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_of(files: &[(&str, &str)]) -> Vec<Module> {
        let module = |&(path, text): &(&str, &str)| Module {
            path: path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            file: path.into(),
            syntax: syn::parse_str(text).unwrap(),
        };
        files.iter().map(module).collect()
    }

    #[test]
    fn a_re_export_is_followed_and_is_no_dependency() {
        let files = [
            ("", "mod a; mod b; pub use a::A;"),
            ("a", "pub struct A;"),
            ("b", "use crate::A; struct B(A);"),
        ];
        assert!(circles(&crate_of(&files)).is_empty());
        let files = [
            ("", "mod a; mod b; pub use a::A;"),
            ("a", "pub struct A(crate::b::B);"),
            ("b", "use crate::A; pub struct B(A);"),
        ];
        let found = circles(&crate_of(&files));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].dependencies.len(), 2);
    }

    #[test]
    fn a_parent_and_its_children_are_one_module() {
        let child = ("a", "use super::Parent; impl Parent { fn f() {} }");
        let parent = ("", "mod a; pub struct Parent(a::Part);");
        assert!(circles(&crate_of(&[parent, child])).is_empty());
        let files = [
            ("", "mod a; mod b;"),
            ("a", "mod deep; pub struct A;"),
            ("a::deep", "fn f(_: crate::b::B) {}"),
            ("b", "pub struct B(super::a::A);"),
        ];
        assert_eq!(circles(&crate_of(&files)).len(), 1);
    }

    /// `a` names the crates `one`, and `two` by way of `b` and of its own child, but not `three`,
    /// which only a module names that it does not use.
    #[test]
    fn a_module_names_the_crates_that_it_reaches() {
        let files = [
            ("", "mod a; mod b; mod c; pub use b::B;"),
            ("a", "mod deep; use one::One; struct A(crate::B);"),
            ("a::deep", "fn f(_: two::Deep) {}"),
            ("b", "use two::Two; pub struct B(Two);"),
            ("c", "use three::Three; impl From<Three> for crate::B {}"),
        ];
        let named = crates_named(&crate_of(&files), "a");
        let named: Vec<_> = named.iter().map(|(name, by)| (name.as_str(), by.as_str())).collect();
        assert_eq!(named, [("one", "a"), ("two", "a::deep")]);
    }

    #[test]
    fn code_for_tests_does_not_count() {
        let tests = "pub struct B; #[cfg(test)] mod tests { fn g(_: crate::a::A) {} }";
        let files = [("", "mod a; mod b;"), ("a", "pub struct A(crate::b::B);"), ("b", tests)];
        assert!(circles(&crate_of(&files)).is_empty());
    }
}
