//! The fields of `createRole` and `updateRole`, and of the commands that grant and revoke privileges.

use pando_access::{Privilege, PrivilegeFault, PrivilegeList, RoleName};
use pando_document::{Document, DocumentWriter, RawArray, RawDocument, RawValue, Value};

use super::account_names::role_names;
use crate::accounts::Restriction;
use crate::arguments::{Argument, Arguments, wrong_type};
use crate::{CommandError, ErrorCode};

/// See the module's head.
#[derive(Default)]
pub(super) struct RoleFields<'a> {
    pub privileges: Option<PrivilegeList>,
    pub roles: Option<Vec<RoleName>>,
    /// Checked.
    pub restrictions: Option<&'a RawArray>,
}

impl<'a> RoleFields<'a> {
    /// Reads them.
    pub fn read(
        command: &'static str,
        body: &'a RawDocument,
        database: &str,
    ) -> Result<RoleFields<'a>, CommandError> {
        let mut fields = RoleFields::default();
        for argument in Arguments::of_command(command, body) {
            let argument = argument?;
            match argument.name {
                "privileges" => fields.privileges = Some(read_privileges(command, &argument)?),
                "roles" => fields.roles = Some(role_names(&argument, database)?),
                "authenticationRestrictions" => {
                    let list = argument.array()?;
                    Restriction::read_list(&format!("{command}.authenticationRestrictions"), list)?;
                    fields.restrictions = Some(list);
                }
                _ => argument.refuse_unless_generic()?,
            }
        }
        Ok(fields)
    }
}

/// The field `privileges`.
pub(super) fn read_privileges(
    command: &'static str,
    argument: &Argument<'_>,
) -> Result<PrivilegeList, CommandError> {
    let mut privileges = PrivilegeList::default();
    for (at, element) in argument.array()?.iter().enumerate() {
        match element? {
            RawValue::Document(document) => privileges.add(&Privilege::read(document).map_err(fault)?),
            other => return Err(wrong_type(&format!("{command}.privileges.{at}"), other, "type 'object'")),
        }
    }
    Ok(privileges)
}

fn fault(fault: PrivilegeFault) -> CommandError {
    let code = match &fault {
        PrivilegeFault::Form(_) => ErrorCode::FailedToParse,
        PrivilegeFault::Type { .. } | PrivilegeFault::Bytes(_) | PrivilegeFault::Actions(_) => {
            ErrorCode::BadValue
        }
    };
    CommandError::failed(code, fault.to_string())
}

/// Refuses privileges that a role of this database cannot have.
pub(super) fn check_privileges(privileges: &PrivilegeList, database: &str) -> Result<(), CommandError> {
    if privileges.iter().all(|privilege| privilege.resource.is_for_roles_of(database)) {
        return Ok(());
    }
    Err(CommandError::failed(
        ErrorCode::InvalidRoleModification,
        format!(
            "Roles on the '{database}' database cannot be granted privileges that target other databases or the cluster"
        ),
    ))
}

/// The value of `privileges` in a document.
pub(super) fn privileges_value(privileges: &PrivilegeList) -> Result<Value, CommandError> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    let mut list = writer.array("privileges");
    privileges.write(&mut list);
    list.finish();
    writer.finish();
    let mut holder = Document::from_raw(RawDocument::from_bytes(&bytes)?)?;
    Ok(holder.remove("privileges").unwrap_or_else(|| Value::Array(Vec::new())))
}
