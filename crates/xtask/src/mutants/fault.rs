//! The faults of a file, found in its syntax.
//!
//! Code for tests, constant code, implementations of `Debug` and the arguments of macros have none.

use crate::tidy::tree::is_test;
use core::ops::Range;
use proc_macro2::Span;
use std::collections::BTreeMap;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Arm, Attribute, BinOp, Block, Expr, ExprBinary, ExprIf, ExprMethodCall, ExprRepeat,
    GenericArgument, ImplItemFn, Item, ItemFn, ItemImpl, ItemTrait, Lit, Pat, Signature, Stmt,
    TraitItemFn, Type, UnOp,
};

/// One fault: a piece of code and what stands there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file's path from the root of the repository.
    pub file: String,
    /// The function's name with its type; a number follows if the function has the same fault
    /// twice.
    pub function: String,
    /// The code, on one line.
    pub before: String,
    /// The code with the fault, on one line; empty if a statement is missing.
    pub after: String,
    /// The code's first line.
    pub line: usize,
    /// The code's bytes in the file.
    pub bytes: Range<usize>,
}

impl Fault {
    /// The fault as a block of `equivalent.txt`, which does not depend on lines.
    #[must_use]
    pub fn block(&self) -> String {
        let Self { file, function, before, after, .. } = self;
        format!("{file} {function}\n- {before}\n+ {after}\n").replace("+ \n", "+\n")
    }
}

/// Returns the faults of `text`, the source of `file`, in the order of the code.
///
/// # Panics
///
/// Panics if the text is not Rust.
#[must_use]
pub fn faults(file: &str, text: &str) -> Vec<Fault> {
    let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut finder = Finder { file, text, names: vec![], found: vec![] };
    finder.visit_file(&syntax);
    let mut found = finder.found;
    found.sort_by_key(|fault: &Fault| (fault.bytes.start, fault.bytes.end));
    let mut times = BTreeMap::new();
    for fault in &mut found {
        let nth = times.entry(fault.block()).or_insert(0);
        *nth += 1;
        if *nth > 1 {
            fault.function += &format!(" {nth}");
        }
    }
    found
}

struct Finder<'a> {
    file: &'a str,
    text: &'a str,
    names: Vec<String>,
    found: Vec<Fault>,
}

/// The text on one line, without comments.
fn one_line(text: &str) -> String {
    let code = text.lines().map(|line| line.split_once("// ").map_or(line, |(code, _)| code));
    code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// The operator that a fault puts in the place of `operator`.
fn other_operator(operator: &BinOp) -> Option<&'static str> {
    Some(match operator {
        BinOp::Lt(_) => "<=",
        BinOp::Le(_) => "<",
        BinOp::Gt(_) => ">=",
        BinOp::Ge(_) => ">",
        BinOp::Eq(_) => "!=",
        BinOp::Ne(_) => "==",
        BinOp::And(_) => "||",
        BinOp::Or(_) => "&&",
        BinOp::Add(_) | BinOp::Mul(_) => "-",
        BinOp::Sub(_) => "+",
        BinOp::Div(_) => "*",
        BinOp::Rem(_) => "/",
        BinOp::Shl(_) => ">>",
        BinOp::Shr(_) => "<<",
        BinOp::BitAnd(_) | BinOp::BitXor(_) => "|",
        BinOp::BitOr(_) => "&",
        BinOp::AddAssign(_) => "-=",
        BinOp::SubAssign(_) => "+=",
        BinOp::BitAndAssign(_) => "|=",
        BinOp::BitOrAssign(_) => "&=",
        BinOp::ShlAssign(_) => ">>=",
        BinOp::ShrAssign(_) => "<<=",
        _ => return None,
    })
}

/// The method of the same type that a fault calls instead of `method`.
fn other_method(method: &str) -> Option<&'static str> {
    Some(match method {
        "min" => "max",
        "max" => "min",
        "any" => "all",
        "all" => "any",
        "is_some" => "is_none",
        "is_none" => "is_some",
        "is_ok" => "is_err",
        "is_err" => "is_ok",
        _ => return None,
    })
}

/// Whether a condition binds names, so that it cannot stand elsewhere.
fn binds(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(pair) => binds(&pair.left) || binds(&pair.right),
        _ => false,
    }
}

/// Whether a statement may be missing: it leaves no value and declares nothing.
fn may_be_missing(statement: &Expr) -> bool {
    match statement {
        Expr::Try(inner) => may_be_missing(&inner.expr),
        Expr::Binary(pair) => other_operator(&pair.op).is_none_or(|other| other.ends_with('=')),
        // Correct code does the same without its assertions.
        Expr::MethodCall(call) => !call.method.to_string().starts_with("assert"),
        Expr::Call(_) | Expr::Assign(_) => true,
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        _ => false,
    }
}

fn excluded(attributes: &[Attribute]) -> bool {
    let loom = |attribute: &Attribute| {
        let words = attribute.meta.require_list().map(|list| list.tokens.to_string());
        words.is_ok_and(|words| words == "loom")
    };
    is_test(attributes) || attributes.iter().any(loom)
}

impl Finder<'_> {
    fn source(&self, span: Span) -> String {
        one_line(&self.text[span.byte_range()])
    }

    fn add(&mut self, span: Span, after: String) {
        self.found.push(Fault {
            file: self.file.into(),
            function: self.names.join("::"),
            before: self.source(span),
            after,
            line: span.start().line,
            bytes: span.byte_range(),
        });
    }

    /// Visits what `name` names with `visit`.
    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.names.push(name);
        visit(self);
        self.names.pop();
    }

    fn function(&mut self, signature: &Signature, body: &Block) {
        if signature.constness.is_none() {
            self.within(signature.ident.to_string(), |finder| finder.visit_block(body));
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(module) => &module.attrs,
            Item::Fn(function) => &function.attrs,
            Item::Impl(block) => &block.attrs,
            Item::Trait(item) => &item.attrs,
            _ => return,
        };
        if !excluded(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.function(&function.sig, &function.block);
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let last =
            |path: &syn::Path| path.segments.last().is_some_and(|last| last.ident == "Debug");
        if !block.trait_.as_ref().is_some_and(|(path, _)| last(path)) {
            let name = self.source(block.self_ty.span());
            self.within(name, |finder| {
                block.items.iter().for_each(|item| finder.visit_impl_item(item))
            });
        }
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        let visit =
            |finder: &mut Self| item.items.iter().for_each(|item| finder.visit_trait_item(item));
        self.within(item.ident.to_string(), visit);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !excluded(&function.attrs) {
            self.function(&function.sig, &function.block);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.function(&function.sig, body);
        }
    }

    // Patterns, types and constants cannot have a switch.
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_generic_argument(&mut self, _: &'ast GenericArgument) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_expr_repeat(&mut self, repeat: &'ast ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Expr(inner, Some(_)) = statement
            && may_be_missing(inner)
        {
            self.add(statement.span(), String::new());
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        if let Pat::Guard(guarded) = &arm.pat {
            if !binds(&guarded.guard) {
                self.add(guarded.guard.span(), "true".into());
                self.add(guarded.guard.span(), "false".into());
            }
            self.visit_expr(&guarded.guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_if(&mut self, condition: &'ast ExprIf) {
        if !binds(&condition.cond) {
            let after = format!("!({})", self.source(condition.cond.span()));
            self.add(condition.cond.span(), after);
        }
        visit::visit_expr_if(self, condition);
    }

    fn visit_expr_binary(&mut self, pair: &'ast ExprBinary) {
        if let Some(other) = other_operator(&pair.op)
            && !binds(&pair.left)
            && !binds(&pair.right)
        {
            let left = self.source(pair.left.span());
            let right = self.source(pair.right.span());
            self.add(pair.span(), format!("{left} {other} {right}"));
        }
        visit::visit_expr_binary(self, pair);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if let Some(other) = other_method(&call.method.to_string()) {
            let all = call.span().byte_range();
            let name = call.method.span().byte_range();
            let start = &self.text[all.start..name.start];
            let end = &self.text[name.end..all.end];
            self.add(call.span(), one_line(&format!("{start}{other}{end}")));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr(&mut self, code: &'ast Expr) {
        let after = match code {
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_) | UnOp::Neg(_)) => {
                Some(self.source(unary.expr.span()))
            }
            Expr::Lit(literal) => match &literal.lit {
                Lit::Bool(value) => Some((!value.value).to_string()),
                Lit::Int(value) => value
                    .base10_parse::<u128>()
                    .ok()
                    .and_then(|number| number.checked_add(1))
                    .map(|number| format!("{number}{}", value.suffix())),
                _ => None,
            },
            Expr::Call(call) if matches!(&*call.func, Expr::Path(path) if path.path.is_ident("Some")) => {
                Some("None".into())
            }
            _ => None,
        };
        if let Some(after) = after {
            self.add(code.span(), after);
        }
        visit::visit_expr(self, code);
    }
}
