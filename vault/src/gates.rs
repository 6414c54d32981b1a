//! The gate that is a file of the vault.
//!
//! [`stop`] is the stop file, which stops every process of the vault. The facts behind the other gates come from the
//! index: see `index/gates`.

pub mod stop;
