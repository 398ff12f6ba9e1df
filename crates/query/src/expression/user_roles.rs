//! `$$USER_ROLES`: the roles of the user whose request is parsed.

use std::sync::Arc;

use pando_document::{DocumentWriter, RawDocumentBuf};

use crate::literal::Literal;

/// The roles of a user, as `$$USER_ROLES` gives them. Clones share the list.
///
/// The default is an empty list: that of a client without a login.
#[derive(Clone, Debug, Default)]
pub struct UserRoles(Option<Arc<Literal>>);

/// A role of a user.
#[derive(Clone, Copy, Debug)]
pub struct UserRole<'r> {
    /// Its name, as `readWrite`.
    pub name: &'r str,
    /// The database that defines it.
    pub database: &'r str,
}

impl UserRoles {
    /// The list of these roles, in their order.
    pub fn new<'r>(roles: impl IntoIterator<Item = UserRole<'r>>) -> UserRoles {
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        let mut list = writer.array("");
        for UserRole { name, database } in roles {
            let mut role = list.document();
            role.append_str("_id", &format!("{database}.{name}"));
            role.append_str("role", name);
            role.append_str("db", database);
            role.finish();
        }
        list.finish();
        writer.finish();
        let boxed = RawDocumentBuf::from_vec(bytes).expect("the writer writes whole documents");
        let list = boxed.iter().next().and_then(Result::ok);
        UserRoles(list.map(|(_, list)| Arc::new(Literal::new(list))))
    }

    /// The list as a value. `None` stands for the empty list.
    pub(super) fn literal(&self) -> Option<&Literal> {
        self.0.as_deref()
    }
}
