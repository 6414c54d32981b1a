//! Gates that are files of the vault.
//!
//! [`stop`] is the file that stops every process of the vault. The facts behind the other gates come from the index:
//! see `index/gates`.

pub mod stop;
