//! The name of a command, and the databases that it may be run on: the part of the registry that commands
//! themselves ask for.

/// Where a command may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// On any database.
    Any,
    /// On `admin` only.
    Admin,
}

/// A command by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandName {
    pub name: &'static str,
    pub scope: Scope,
}
