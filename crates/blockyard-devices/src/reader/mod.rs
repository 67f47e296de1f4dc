//! The reader of profile files: tables and values with their lines, ranges, bases and origins.

pub(crate) mod base;
pub(crate) mod builtin;
pub(crate) mod error;
pub(crate) mod instead;
pub(crate) mod names;
pub(crate) mod reading;
pub(crate) mod source;
pub(crate) mod spread;
pub(crate) mod syntax;
pub(crate) mod table;
pub(crate) mod value;
