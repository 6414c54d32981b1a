//! The gates that are files of the vault.
//!
//! [`stop`] is the stop file, which stops every process of the vault. [`drain`] lets no new run begin. The facts behind the other gates come from the
//! index: see `index/gates`.

pub mod drain;
pub mod stop;
