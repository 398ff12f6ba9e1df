//! The policy: the parts of `deny.toml` that this check reads.

use std::path::Path;

use serde::Deserialize;

use crate::finding::CheckError;

/// The file of the policy.
pub const POLICY: &str = "deny.toml";

/// The policy.
#[derive(Debug, Deserialize)]
pub struct Policy {
    pub licenses: Licences,
    pub sources: Sources,
    pub bans: Bans,
}

/// Licences that are allowed, for all packages and for single ones.
#[derive(Debug, Deserialize)]
pub struct Licences {
    allow: Vec<String>,
    #[serde(default)]
    pub exceptions: Vec<Exception>,
}

/// Licences of one package.
#[derive(Debug, Deserialize)]
pub struct Exception {
    #[serde(rename = "crate")]
    pub name: String,
    allow: Vec<String>,
}

/// Places that packages may come from.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sources {
    pub allow_registry: Vec<String>,
}

/// Packages that must not be there, or may be there twice.
#[derive(Debug, Deserialize)]
pub struct Bans {
    #[serde(default)]
    pub deny: Vec<Named>,
    #[serde(default)]
    pub skip: Vec<Named>,
}

/// A package by its name.
#[derive(Debug, Deserialize)]
pub struct Named {
    #[serde(rename = "crate")]
    pub name: String,
}

impl Policy {
    /// Reads the policy of a workspace.
    pub fn read(root: &Path) -> Result<Policy, CheckError> {
        let path = root.join(POLICY);
        let text = std::fs::read_to_string(&path)
            .map_err(|source| CheckError::Read { path: path.clone(), source })?;
        toml::from_str(&text).map_err(|source| CheckError::Policy { path, source: Box::new(source) })
    }

    /// Whether a package may have this licence.
    pub fn allows(&self, package: &str, licence: &str) -> bool {
        let own = self.licenses.exceptions.iter().filter(|exception| exception.name == package);
        let mut allowed = self.licenses.allow.iter().chain(own.flat_map(|exception| &exception.allow));
        allowed.any(|allowed| allowed == licence)
    }
}
