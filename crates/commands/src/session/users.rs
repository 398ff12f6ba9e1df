//! The commands of users and roles: there are none yet, and the answer says so.

use crate::{CommandError, ErrorCode};

/// MongoDB's commands of users and roles.
const COMMANDS: [&str; 18] = [
    "createRole",
    "createUser",
    "dropAllRolesFromDatabase",
    "dropAllUsersFromDatabase",
    "dropRole",
    "dropUser",
    "grantPrivilegesToRole",
    "grantRolesToRole",
    "grantRolesToUser",
    "invalidateUserCache",
    "revokePrivilegesFromRole",
    "revokeRolesFromRole",
    "revokeRolesFromUser",
    "rolesInfo",
    "updateRole",
    "updateUser",
    "usersInfo",
    "usersinfo",
];

/// The answer to such a command; `None` for every other name.
pub(crate) fn refusal(command: &str) -> Option<CommandError> {
    COMMANDS.contains(&command).then(|| {
        CommandError::failed(
            ErrorCode::CommandNotSupported,
            format!(
                "{command} is not supported: this server has no users and roles yet, and every client that reaches it has full \
                 access. It listens on this machine only unless --listen says otherwise"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_users_is_answered_with_the_state_of_things_and_others_are_not() {
        let Some(CommandError::Failed(failure)) = refusal("createUser") else { panic!("it is refused") };
        assert_eq!(failure.code.code(), 115);
        assert!(refusal("createUsers").is_none() && refusal("find").is_none());
    }
}
