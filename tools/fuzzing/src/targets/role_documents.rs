//! Privileges of stored roles: what is read is written so that it reads the same, and a right on data is none
//! on the cluster.
//!
//! The bytes are tried twice: as they are, and as a document of their length.

use pando_access::{Action, Authority, Privilege, PrivilegeList, Target};
use pando_document::{DocumentWriter, RawDocument, Value, doc};

/// Inputs that are sound: a privilege on each kind of resource.
pub fn examples() -> Vec<Vec<u8>> {
    let actions = || vec![Value::from("find"), Value::from("insert")];
    let resources = [
        doc! { "db": "shop", "collection": "orders" },
        doc! { "db": "", "collection": "" },
        doc! { "db": "shop", "collection": "" },
        doc! { "db": "shop", "system_buckets": "series" },
        doc! { "system_buckets": "series" },
        doc! { "cluster": true },
        doc! { "anyResource": true },
    ];
    let privileges = resources.map(|resource| doc! { "resource": resource, "actions": actions() });
    privileges.iter().map(|privilege| privilege.to_raw().as_bytes().to_vec()).collect()
}

/// See the module.
pub fn run(bytes: &[u8]) {
    try_one(bytes);
    let mut document = bytes.to_vec();
    if let (Ok(length), Some(prefix)) = (u32::try_from(document.len()), document.first_chunk_mut::<4>()) {
        *prefix = length.to_le_bytes();
        try_one(&document);
    }
}

fn try_one(bytes: &[u8]) {
    let Ok(document) = RawDocument::from_bytes(bytes) else { return };
    let Ok(privilege) = Privilege::read(document) else { return };
    let mut written = Vec::new();
    let mut out = DocumentWriter::begin(&mut written);
    privilege.write(&mut out);
    out.finish();
    let again = RawDocument::from_bytes(&written).expect("what was written is framed");
    assert_eq!(Privilege::read(again).expect("what was written is read"), privilege);
    let list: PrivilegeList = [privilege].into_iter().collect();
    let authority = Authority::new(&list);
    let on_data =
        authority.allows(Action::Find, Target::Collection { database: "shop", collection: "orders" });
    let on_cluster = authority.allows(Action::Find, Target::Cluster);
    let resource = document.get("resource").ok().flatten().and_then(|resource| resource.as_document());
    let is_of_all = resource.is_some_and(|resource| {
        resource
            .iter()
            .any(|field| matches!(field, Ok((name, value)) if name == "anyResource" && value.to_bool()))
    });
    assert!(is_of_all || !(on_data && on_cluster), "a privilege has one resource");
}
