//! The check of packages of others: licences, sources, second versions and banned packages, by `deny.toml`.
//!
//! | rule | fails on |
//! |---|---|
//! | `licence` | a package of the workspace's lock whose licence the policy does not allow, or that names none |
//! | `source` | a package that comes from elsewhere than the allowed registries |
//! | `banned` | a banned package among those of the server |
//! | `duplicate` | a package of the server in two versions, unless the policy skips it |
//! | `unused` | an entry of the policy without a package |
//!
//! The policy has the format of cargo-deny, of which this is a part. It needs no program and no network. Not
//! here: advisories, whose database is on the network (`make deny`).

mod expression;
mod policy;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

use crate::finding::{CheckError, Finding};
use expression::is_allowed;
use policy::{POLICY, Policy};

/// The package whose dependencies must not come twice.
const SERVER: &str = "pando-server";

/// Checks the workspace whose root this is.
pub fn check_workspace(root: &Path) -> Result<Vec<Finding>, CheckError> {
    let policy = Policy::read(root)?;
    let metadata = MetadataCommand::new().manifest_path(root.join("Cargo.toml")).exec()?;
    let mut findings = Vec::new();
    let others: Vec<&Package> = metadata.packages.iter().filter(|package| package.source.is_some()).collect();
    for package in &others {
        findings.extend(check_licence(package, &policy));
        findings.extend(check_source(package, &policy));
    }
    let of_server = versions(&server_packages(&metadata));
    findings.extend(check_versions(&of_server, &policy));
    findings.extend(unused_entries(&others, &of_server, &policy));
    findings.sort();
    Ok(findings)
}

fn finding(rule: &'static str, message: String) -> Finding {
    Finding::new(POLICY, 1, rule, message)
}

fn check_licence(package: &Package, policy: &Policy) -> Option<Finding> {
    let (name, version) = (package.name.as_str(), &package.version);
    let Some(licence) = &package.license else {
        let message = format!("{name} {version} names no licence: read its files, and replace it or ask");
        return Some(finding("licence", message));
    };
    let allows = |term: &str| policy.allows(name, term);
    match is_allowed(licence, &allows) {
        Ok(true) => None,
        Ok(false) => Some(finding(
            "licence",
            format!(
                "{name} {version} has the licence '{licence}', which is not allowed: replace the package"
            ),
        )),
        Err(problem) => Some(finding(
            "licence",
            format!("the licence '{licence}' of {name} {version} is not understood: {problem}"),
        )),
    }
}

fn check_source(package: &Package, policy: &Policy) -> Option<Finding> {
    let source = package.source.as_ref()?.repr.as_str();
    let registry = source.strip_prefix("registry+");
    if registry
        .is_some_and(|registry| policy.sources.allow_registry.iter().any(|allowed| allowed == registry))
    {
        return None;
    }
    let message = format!("{} {} comes from {source}: take it from crates.io", package.name, package.version);
    Some(finding("source", message))
}

/// The packages that the server is made of: normal and build dependencies, those of tests not among them.
fn server_packages(metadata: &Metadata) -> Vec<&Package> {
    let packages: HashMap<&PackageId, &Package> =
        metadata.packages.iter().map(|package| (&package.id, package)).collect();
    let nodes: HashMap<&PackageId, _> =
        metadata.resolve.iter().flat_map(|resolve| &resolve.nodes).map(|node| (&node.id, node)).collect();
    let mut waiting: Vec<&PackageId> = metadata
        .packages
        .iter()
        .filter(|package| package.name.as_str() == SERVER)
        .map(|own| &own.id)
        .collect();
    let mut found = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !found.insert(id) {
            continue;
        }
        for dependency in nodes.get(id).into_iter().flat_map(|node| &node.deps) {
            if dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal) {
                waiting.push(&dependency.pkg);
            }
        }
    }
    found.into_iter().filter_map(|id| packages.get(id).copied()).collect()
}

fn versions(packages: &[&Package]) -> BTreeMap<String, BTreeSet<String>> {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages {
        versions.entry(package.name.to_string()).or_default().insert(package.version.to_string());
    }
    versions
}

fn check_versions(of_server: &BTreeMap<String, BTreeSet<String>>, policy: &Policy) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, versions) in of_server {
        if policy.bans.deny.iter().any(|banned| banned.name == *name) {
            findings.push(finding("banned", format!("the server depends on {name}, which is banned")));
        }
        if versions.len() > 1 && !policy.bans.skip.iter().any(|skipped| skipped.name == *name) {
            let list: Vec<&str> = versions.iter().map(String::as_str).collect();
            let message = format!(
                "the server has {name} in the versions {}: bring its dependencies to one",
                list.join(" and ")
            );
            findings.push(finding("duplicate", message));
        }
    }
    findings
}

/// Exceptions that no package needs any more.
fn unused_entries(
    others: &[&Package],
    of_server: &BTreeMap<String, BTreeSet<String>>,
    policy: &Policy,
) -> Vec<Finding> {
    let is_there = |name: &str| others.iter().any(|package| package.name.as_str() == name);
    let exceptions = policy.licenses.exceptions.iter().map(|exception| exception.name.as_str());
    let exceptions = exceptions.filter(|name| !is_there(name));
    let is_double = |name: &str| of_server.get(name).is_some_and(|versions| versions.len() > 1);
    let skips = policy.bans.skip.iter().map(|skipped| skipped.name.as_str()).filter(|name| !is_double(name));
    let message = |name: &str| finding("unused", format!("{name} needs no exception any more: remove it"));
    exceptions.chain(skips).map(message).collect()
}
