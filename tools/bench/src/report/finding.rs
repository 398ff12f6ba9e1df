//! A check of the data after a run: how many were looked at, and how many of them were wrong.

/// Something that was checked after a run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Finding {
    /// The thing that was checked.
    pub what: String,
    /// How many were looked at.
    pub checked: u64,
    /// How many of them were wrong.
    pub wrong: u64,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Finding { what, checked, wrong } = self;
        write!(f, "{what}: {checked} checked, {wrong} wrong")
    }
}
