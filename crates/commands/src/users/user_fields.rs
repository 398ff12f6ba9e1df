//! The fields of `createUser` and `updateUser`.

use pando_access::RoleName;
use pando_access::scram::{Credential, Mechanism};
use pando_document::{RawArray, RawDocument};

use super::account_names::role_names;
use super::new_credentials::{MECHANISMS, PasswordForm, derive, read_mechanisms};
use crate::accounts::Restriction;
use crate::arguments::Arguments;
use crate::context::Context;
use crate::{CommandError, ErrorCode};

/// See the module's head.
pub(super) struct UserFields<'a> {
    pub password: Option<&'a str>,
    form: PasswordForm,
    pub mechanisms: Option<Vec<Mechanism>>,
    pub roles: Option<Vec<RoleName>>,
    pub custom: Option<&'a RawDocument>,
    /// Checked.
    pub restrictions: Option<&'a RawArray>,
}

impl<'a> UserFields<'a> {
    /// Reads them.
    pub fn read(
        command: &'static str,
        body: &'a RawDocument,
        database: &str,
    ) -> Result<UserFields<'a>, CommandError> {
        let mut fields = UserFields {
            password: None,
            form: PasswordForm::Plain,
            mechanisms: None,
            roles: None,
            custom: None,
            restrictions: None,
        };
        let mut restrictions = None;
        for argument in Arguments::of_command(command, body) {
            let argument = argument?;
            match argument.name {
                "pwd" => fields.password = argument.string()?,
                "digestPassword" if argument.lenient_boolean()? == Some(false) => {
                    fields.form = PasswordForm::Digested;
                }
                "digestPassword" => {}
                "mechanisms" => fields.mechanisms = Some(read_mechanisms(&argument)?),
                "roles" => fields.roles = Some(role_names(&argument, database)?),
                "customData" => fields.custom = argument.document()?,
                "authenticationRestrictions" => restrictions = Some(argument.array()?),
                _ => argument.refuse_unless_generic()?,
            }
        }
        if let Some(list) = restrictions {
            let read = Restriction::read_list(&format!("{command}.authenticationRestrictions"), list)?;
            Restriction::check_filled(&read)?;
            fields.restrictions = Some(list);
        }
        Ok(fields)
    }

    /// The credentials of the new password; `None` without one.
    pub fn credentials(
        &self,
        context: &Context<'_>,
        user: &str,
    ) -> Result<Option<Vec<Credential>>, CommandError> {
        let Some(password) = self.password else { return Ok(None) };
        if context.database == "$external" {
            return Err(CommandError::failed(
                ErrorCode::BadValue,
                "Cannot set the password for users defined on the '$external' database",
            ));
        }
        let mechanisms = self.mechanisms.as_deref().unwrap_or(&MECHANISMS);
        derive(context, user, password, self.form, mechanisms).map(Some)
    }
}
