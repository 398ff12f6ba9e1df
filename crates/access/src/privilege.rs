//! Privileges: actions on a resource, one or a list of them, and their documents.

use pando_document::{ArrayWriter, DocumentWriter, RawDocument, RawValue};

use crate::resource::PrivilegeFault;
use crate::{Action, ActionSet, Resource};

/// Actions on a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// The resource.
    pub resource: Resource,
    /// The actions that are allowed on it.
    pub actions: ActionSet,
}

/// A list of privileges with one entry for each resource, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrivilegeList {
    privileges: Vec<Privilege>,
}

impl Privilege {
    /// Reads `{resource: {…}, actions: […]}`.
    ///
    /// # Errors
    /// The document is none of a privilege.
    pub fn read(document: &RawDocument) -> Result<Privilege, PrivilegeFault> {
        let (mut resource, mut actions) = (None, None);
        for field in document.iter() {
            match field? {
                ("resource", RawValue::Document(document)) => resource = Some(document),
                ("resource", other) => {
                    return Err(PrivilegeFault::of_type("resource", "Object/Array", other.element_type()));
                }
                ("actions", RawValue::Array(list)) => actions = Some(list),
                ("actions", other) => {
                    return Err(PrivilegeFault::of_type("actions", "vector array", other.element_type()));
                }
                _ => {}
            }
        }
        let mut names = Vec::new();
        for name in actions.into_iter().flatten() {
            match name? {
                RawValue::String(name) => names.push(name),
                other => return Err(PrivilegeFault::of_type("actions", "string", other.element_type())),
            }
        }
        if names.is_empty() {
            return Err(PrivilegeFault::Form("missing actions field".to_owned()));
        }
        let resource = resource.ok_or_else(|| PrivilegeFault::Form("missing resource field".to_owned()))?;
        Ok(Privilege { resource: Resource::read(resource)?, actions: known(&names)? })
    }

    /// Writes `{resource: {…}, actions: […]}`.
    pub fn write(&self, out: &mut DocumentWriter<'_>) {
        let mut resource = out.document("resource");
        self.resource.write(&mut resource);
        resource.finish();
        let mut actions = out.array("actions");
        for action in self.actions.shown() {
            actions.push(RawValue::String(action.name()));
        }
        actions.finish();
    }
}

/// The actions of these names. With `anyAction` among them, the others are not looked at, as in MongoDB.
fn known(names: &[&str]) -> Result<ActionSet, PrivilegeFault> {
    if names.contains(&Action::AnyAction.name()) {
        return Ok(ActionSet::of(&[Action::AnyAction]));
    }
    let mut actions = ActionSet::EMPTY;
    let mut unknown = Vec::new();
    for name in names {
        match Action::of_name(name) {
            Some(action) => actions.insert(action),
            None => unknown.push((*name).to_owned()),
        }
    }
    match unknown.is_empty() {
        true => Ok(actions),
        false => Err(PrivilegeFault::Actions(unknown)),
    }
}

impl PrivilegeList {
    /// Adds a privilege, to that of the same resource if there is one.
    pub fn add(&mut self, privilege: &Privilege) {
        match self.privileges.iter_mut().find(|have| have.resource == privilege.resource) {
            Some(have) => have.actions.insert_all(&privilege.actions),
            None => self.privileges.push(privilege.clone()),
        }
    }

    /// Adds all privileges of another list.
    pub fn add_all(&mut self, more: &PrivilegeList) {
        for privilege in &more.privileges {
            self.add(privilege);
        }
    }

    /// Takes the actions of a privilege away from that of the same resource.
    pub fn remove(&mut self, privilege: &Privilege) {
        self.privileges.retain_mut(|have| {
            if have.resource == privilege.resource {
                have.actions.remove_all(&privilege.actions);
            }
            !have.actions.is_empty()
        });
    }

    /// The privileges.
    pub fn iter(&self) -> std::slice::Iter<'_, Privilege> {
        self.privileges.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.privileges.is_empty()
    }

    /// Writes their documents.
    pub fn write(&self, out: &mut ArrayWriter<'_>) {
        for privilege in &self.privileges {
            let mut document = out.document();
            privilege.write(&mut document);
            document.finish();
        }
    }
}

impl FromIterator<Privilege> for PrivilegeList {
    fn from_iter<I: IntoIterator<Item = Privilege>>(privileges: I) -> PrivilegeList {
        let mut list = PrivilegeList::default();
        for privilege in privileges {
            list.add(&privilege);
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, doc};

    use super::*;

    fn read(document: Document) -> Result<Privilege, PrivilegeFault> {
        Privilege::read(&document.to_raw())
    }

    fn sentence(document: Document) -> String {
        read(document).expect_err("it is refused").to_string()
    }

    #[test]
    fn a_privilege_is_written_in_the_order_of_mongodb() {
        let resource = doc! { "db": "d", "collection": "c" };
        let privilege =
            read(doc! { "actions": ["update", "find", "find", "applyOps"], "resource": resource.clone() });
        let mut bytes = Vec::new();
        let mut out = DocumentWriter::begin(&mut bytes);
        privilege.unwrap().write(&mut out);
        out.finish();
        let expected = doc! { "resource": resource, "actions": ["find", "update", "applyOps"] };
        assert_eq!(RawDocument::from_bytes(&bytes).unwrap(), &*expected.to_raw());
    }

    #[test]
    fn a_document_of_no_privilege_is_refused_in_mongodbs_words() {
        let cluster = || doc! { "cluster": true };
        assert_eq!(sentence(doc! {}), "missing actions field");
        assert_eq!(sentence(doc! { "resource": cluster(), "actions": [] }), "missing actions field");
        assert_eq!(sentence(doc! { "actions": ["find"] }), "missing resource field");
        assert_eq!(
            sentence(doc! { "resource": cluster(), "actions": ["find", "bogus"] }),
            "Unrecognized action: bogus"
        );
        assert_eq!(
            sentence(doc! { "resource": cluster(), "actions": ["boo", "bogus"] }),
            "Unrecognized actions: boo, bogus"
        );
        assert!(sentence(doc! { "resource": 1, "actions": ["find"] }).contains("expected Object/Array"));
        assert!(sentence(doc! { "resource": cluster(), "actions": [1] }).contains("expected string"));
        assert!(sentence(doc! { "resource": cluster(), "actions": "find" }).contains("vector array"));
        let any = read(doc! { "resource": cluster(), "actions": ["bogus", "anyAction"] }).unwrap();
        assert_eq!(any.actions, ActionSet::of(&[Action::AnyAction]));
    }

    #[test]
    fn privileges_on_one_resource_are_one() {
        let of =
            |resource: Resource, actions: &[Action]| Privilege { resource, actions: ActionSet::of(actions) };
        let mut list: PrivilegeList = [
            of(Resource::Cluster, &[Action::Find]),
            of(Resource::Normal, &[Action::Insert]),
            of(Resource::Cluster, &[Action::Remove]),
        ]
        .into_iter()
        .collect();
        assert_eq!(list.iter().count(), 2);
        list.remove(&of(Resource::Cluster, &[Action::Find]));
        assert_eq!(list.iter().next(), Some(&of(Resource::Cluster, &[Action::Remove])));
        list.remove(&of(Resource::Cluster, &[Action::Remove]));
        assert_eq!(list.iter().count(), 1);
    }
}
